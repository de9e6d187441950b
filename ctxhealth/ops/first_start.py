"""What a server needs before its first page: a migrated database, an admin, a token to begin."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from ctxhealth.bootstrap import datadir
from ctxhealth.bootstrap.errors import CannotStartError
from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_CONNECT_SECONDS = 5
AGENT_SCOPES = ("ingest", "command")
ADMIN: Literal["admin"] = "admin"


def data_dir_prepare() -> None:
    """Make the data folder; CannotStartError says why not."""
    datadir.prepare(settings.CTXHEALTH_DATA_DIR)


def database_prepare() -> int:
    """Bring the schema up to this version; returns how many migrations that took."""
    if connection.vendor == "postgresql":
        _postgresql_reached()
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if plan:
            call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
        return len(plan)
    except DatabaseError as error:
        raise CannotStartError(_database_sentence(error)) from error
    finally:
        connection.close()


def _postgresql_reached() -> None:
    """Ask without the pool, which would retry for seconds and hide the reason."""
    import psycopg

    database = settings.DATABASES["default"]
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host"}
    names["PORT"] = "port"
    wanted = {names[name]: database[name] for name in names if database[name]}
    wanted |= {name: value for name, value in database["OPTIONS"].items() if name != "pool"}
    try:
        psycopg.connect(**{"connect_timeout": _CONNECT_SECONDS, **wanted}).close()
    except psycopg.Error as error:
        raise CannotStartError(_database_sentence(error)) from error


def _database_sentence(error: Exception) -> str:
    database = settings.DATABASES["default"]
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if connection.vendor == "sqlite":
        return f"The database {database['NAME']} cannot be used: {reason}."
    place = f"{database['NAME']} at {database['HOST'] or 'the local socket'}"
    return f"The PostgreSQL database {place} cannot be used: {reason}."


def first_admin() -> User:
    """An active admin to log in as; `admin` is made where there is none."""
    admins = get_user_model().objects.filter(groups__name=ADMIN, is_active=True)
    found = admins.order_by("pk").first()
    if found is not None:
        return found
    user: User = writes.user_ensure(username=ADMIN, role=ADMIN)
    if not user.is_active:
        raise CannotStartError(
            f"No admin is active and the account {ADMIN!r} was switched off: "
            "switch an admin on before starting with `up`, or start with `serve`."
        )
    return user


def first_token(*, wanted: bool) -> str | None:
    """A new agent token's secret, on the very first start or where `wanted`; else None."""
    if queries.tokens_list() and not wanted:
        return None
    _, secret = writes.token_create(name="first agent", scopes=AGENT_SCOPES)
    return secret


def demo_token_file() -> Path:
    """The file with the demo agents' token, kept over starts as long as the token is valid."""
    path = Path(settings.CTXHEALTH_DATA_DIR) / "demo.token"
    if not _holds_valid_token(path):
        _, secret = writes.token_create(name="demo agents", scopes=AGENT_SCOPES)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secret + "\n")
    return path


def _holds_valid_token(path: Path) -> bool:
    try:
        bearer = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return False
    return queries.token_check(bearer, now_ms()) is not None
