"""Fixtures for every room's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis  # noqa: F401  CPython gh-106905: a late import inside pytest breaks on 3.11.7
import pytest

from tests.run import postgres, tools

_DATABASE_FIXTURES = {"db", "transactional_db", "django_db_serialized_rollback"}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what touches Django's database, so that `-m db` runs it on PostgreSQL too.

    Browser tests come last, whatever the order of the rest: Playwright's own event loop stays
    open in the main thread, and nothing after it can start another one.
    """
    for item in items:
        if _uses_database(item):
            item.add_marker("db")
    items.sort(key=_drives_a_browser)


def _drives_a_browser(item: pytest.Item) -> bool:
    return item.path.is_relative_to(tools.ROOT / "tests" / "browser")


def _uses_database(item: pytest.Item) -> bool:
    from django.test import TransactionTestCase

    if item.get_closest_marker("django_db") is not None:
        return True
    if _DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    case = getattr(item, "cls", None)
    return isinstance(case, type) and issubclass(case, TransactionTestCase)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
) -> None:
    """SQLite's test database is a file: the writer is a thread and must see the same rows."""
    from django.conf import settings

    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        path = Path(os.environ["CTXHEALTH_DATA_DIR"]) / f"test-{os.getpid()}.sqlite3"
        database.setdefault("TEST", {})["NAME"] = str(path)


@pytest.fixture(scope="session")
def chromium_path() -> Path:
    """The system's Chromium; a counted skip without one."""
    found = tools.chromium()
    if found is None:
        pytest.skip("needs chromium: install it, or name it in CTXHEALTH_CHROMIUM")
    return found


@pytest.fixture(scope="session")
def samples_dir() -> Path:
    """Real session files; a counted skip without them."""
    found = tools.samples()
    if found is None:
        pytest.skip("needs samples: ../shared/samples, or a folder named in CTXHEALTH_SAMPLES")
    return found


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[postgres.Cluster]:
    """A PostgreSQL of this test run's own; a counted skip where it is not installed."""
    cluster = postgres.start_cluster()
    if cluster is None:
        pytest.skip("needs postgresql: install its server")
    yield cluster
    cluster.stop()


@pytest.fixture
def postgres_url(postgres_cluster: postgres.Cluster) -> str:
    """DATABASE_URL of a new, empty database."""
    return postgres_cluster.create_database()
