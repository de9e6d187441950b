"""Files that were imported, connections of agents, hand-over notes."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (
        ("store", "0005_settings_and_judging"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    )

    operations = (
        migrations.AddField(
            model_name="agent",
            name="imported",
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name="HandoverNote",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField()),
                ("by_name", models.CharField(blank=True, default="", max_length=200)),
                ("at", models.BigIntegerField()),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="store.project"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AgentConnection",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("conn_no", models.BigIntegerField()),
                ("runtime_version", models.CharField(blank=True, default="", max_length=200)),
                ("sdk", models.CharField(blank=True, default="", max_length=200)),
                ("epoch", models.CharField(blank=True, default="", max_length=200)),
                ("skew_ms", models.BigIntegerField(null=True)),
                ("connected_at", models.BigIntegerField()),
                ("ended_at", models.BigIntegerField(null=True)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="store.agent"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("agent", "conn_no"), name="agent_connection_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Import",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("batch", models.CharField(max_length=40)),
                ("by_name", models.CharField(blank=True, default="", max_length=200)),
                ("name", models.CharField(max_length=300)),
                ("spooled", models.CharField(blank=True, default="", max_length=80)),
                ("size", models.BigIntegerField()),
                ("sha256", models.CharField(blank=True, default="", max_length=64)),
                ("state", models.CharField(default="queued", max_length=20)),
                ("reason", models.TextField(blank=True, default="")),
                ("what", models.CharField(blank=True, default="", max_length=100)),
                ("bytes_read", models.BigIntegerField(default=0)),
                ("lines", models.BigIntegerField(default=0)),
                ("events", models.BigIntegerField(default=0)),
                ("unreadable", models.BigIntegerField(default=0)),
                ("chats", models.BigIntegerField(default=0)),
                ("troubles", models.TextField(blank=True, default="")),
                ("resumed", models.IntegerField(default=0)),
                ("created_at", models.BigIntegerField()),
                ("started_at", models.BigIntegerField(null=True)),
                ("ended_at", models.BigIntegerField(null=True)),
                ("incident", models.BigIntegerField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "chat",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to="store.chat"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="store.project"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ("queued", "reading"))),
                        fields=["id"],
                        name="import_open",
                    ),
                    models.Index(fields=["sha256"], name="import_by_content"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ImportPlace",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("session", models.CharField(max_length=200)),
                ("seq", models.BigIntegerField()),
                ("offset", models.BigIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("reader", models.BinaryField()),
                ("at", models.BigIntegerField()),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="store.agent"
                    ),
                ),
                (
                    "stream",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="store.stream"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("agent", "session"), name="import_place_once")
                ],
            },
        ),
    )
