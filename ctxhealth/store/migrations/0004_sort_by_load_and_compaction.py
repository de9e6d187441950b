"""Columns that the board sorts by, filled from the summaries that stand."""

from __future__ import annotations

import json
from typing import Any

from django.db import migrations, models


def fill(apps: Any, schema_editor: Any) -> None:
    chats = apps.get_model("store", "Chat").objects.only("id", "summary")
    for chat in chats.iterator(500):
        shown = json.loads(chat.summary or "{}")
        load, budget = (shown.get("load") or {}).get("value"), shown.get("budget")
        if load is not None and budget and budget > 0:
            chat.load_share = 1_000_000 * load // budget
        chat.compacted_at = (shown.get("last_compaction") or {}).get("at") or None
        chat.save(update_fields=["load_share", "compacted_at"])


class Migration(migrations.Migration):
    dependencies = (("store", "0003_window_overrides"),)

    operations = (
        migrations.AddField("chat", "load_share", models.BigIntegerField(null=True)),
        migrations.AddField("chat", "compacted_at", models.BigIntegerField(null=True)),
        migrations.RunPython(fill, migrations.RunPython.noop),
    )
