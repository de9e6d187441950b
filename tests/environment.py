"""Gives a test run its own data folder; loaded by pytest before the settings are."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "CTXHEALTH_DATA_DIR" not in os.environ:
    _data_dir = tempfile.mkdtemp(prefix="ctxhealth-test-")
    atexit.register(shutil.rmtree, _data_dir, ignore_errors=True)
    os.environ["CTXHEALTH_DATA_DIR"] = _data_dir
os.environ.setdefault("SECRET_KEY", "test-only-" + "k" * 50)
