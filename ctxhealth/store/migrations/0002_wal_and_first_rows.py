"""Turn on the write-ahead log once (the file keeps it) and make the rows that always exist."""

from __future__ import annotations

import time
from typing import Any

from django.db import migrations

ROLES = ("viewer", "operator", "admin")


def turn_on_wal(apps: Any, schema_editor: Any) -> None:
    """Not per connection: many connections at once would meet SQLITE_BUSY while switching."""
    if schema_editor.connection.vendor == "sqlite":
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("PRAGMA journal_mode=WAL")


def make_first_rows(apps: Any, schema_editor: Any) -> None:
    from ctxhealth.store.ids import uuid7

    now = int(time.time() * 1000)
    apps.get_model("store", "Project").objects.get_or_create(
        slug="default", defaults={"name": "Default"}
    )
    apps.get_model("store", "ServerInfo").objects.get_or_create(
        id=1, defaults={"incarnation": uuid7(now), "created_at": now}
    )
    for role in ROLES:
        apps.get_model("auth", "Group").objects.get_or_create(name=role)


class Migration(migrations.Migration):
    atomic = False

    dependencies = (
        ("store", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
    )

    operations = (
        migrations.RunPython(turn_on_wal, migrations.RunPython.noop),
        migrations.RunPython(make_first_rows, migrations.RunPython.noop),
    )
