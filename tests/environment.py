"""Gives a test run its own settings; loaded by pytest before Django's are.

Settings of the shell do not count: a test run must never meet somebody's real database. The one
way to another database is CTXHEALTH_TEST_DATABASE_URL.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from ctxhealth.environ import SETTINGS_DOC

for _name in SETTINGS_DOC:
    os.environ.pop(_name, None)
    os.environ.pop(f"{_name}_FILE", None)

_data_dir = tempfile.mkdtemp(prefix="ctxhealth-test-")
atexit.register(shutil.rmtree, _data_dir, ignore_errors=True)
os.environ["CTXHEALTH_DATA_DIR"] = _data_dir
os.environ["SECRET_KEY"] = "for-tests-only-" + "k" * 50
if _url := os.environ.get("CTXHEALTH_TEST_DATABASE_URL"):
    os.environ["DATABASE_URL"] = _url
