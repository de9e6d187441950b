"""Fixtures for every room's tests."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis  # noqa: F401  CPython gh-106905: a late import inside pytest breaks on 3.11.7
import pytest


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
) -> None:
    """Test databases are files: the writer is a thread of its own and must see the same rows."""
    from django.conf import settings

    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        path = Path(os.environ["CTXHEALTH_DATA_DIR"]) / f"test-{os.getpid()}.sqlite3"
        database.setdefault("TEST", {})["NAME"] = str(path)
