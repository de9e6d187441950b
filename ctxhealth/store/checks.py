"""System checks: refuse a database or a shape of serving that would lose what was promised."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

# 3.51.3 fixed the WAL-reset race (https://sqlite.org/wal.html#walresetbug); 3.44.6 and 3.50.7
# carry the fix as back-ports.
FIXED_SQLITE = (3, 51, 3)
BACK_PORTS = ((3, 44, 6), (3, 50, 7))


def sqlite_is_safe(version: tuple[int, ...]) -> bool:
    """Whether this SQLite has the WAL-reset fix."""
    if version >= FIXED_SQLITE:
        return True
    return any(version[:2] == fixed[:2] and version >= fixed for fixed in BACK_PORTS)


def _on_sqlite() -> bool:
    return str(settings.DATABASES["default"]["ENGINE"]).endswith("sqlite3")


@register(Tags.compatibility)
def check_sqlite_version(**kwargs: Any) -> list[CheckMessage]:
    if not _on_sqlite():
        return []
    # Whatever stands in for the standard library's module by now is what Django uses.
    import sqlite3

    version = sqlite3.sqlite_version_info
    if sqlite_is_safe(version):
        return []
    shown = ".".join(map(str, version))
    text = f"SQLite {shown} can lose commits when a checkpoint races with a commit (WAL-reset bug)."
    hint = (
        "Install pysqlite3 >= 0.6.1 (or a Python with SQLite >= 3.51.3), or set "
        "CTXHEALTH_ALLOW_OLD_SQLITE=1 to accept the risk."
    )
    if getattr(settings, "CTXHEALTH_ALLOW_OLD_SQLITE", False):
        return [Warning(text, hint=hint, id="store.W001")]
    return [Error(text, hint=hint, id="store.E001")]


@register(Tags.compatibility)
def check_one_worker(**kwargs: Any) -> list[CheckMessage]:
    workers = int(getattr(settings, "CTXHEALTH_WORKERS", 1))
    if workers <= 1:
        return []
    return [
        Error(
            f"CTXHEALTH_WORKERS is {workers}; this version serves with one worker.",
            hint="Set CTXHEALTH_WORKERS=1. Several workers over Redis come later.",
            id="store.E002",
        )
    ]
