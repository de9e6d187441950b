"""Operators' words about windows."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (
        ("store", "0002_wal_and_first_rows"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    )

    operations = (
        migrations.CreateModel(
            name="WindowOverride",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.CharField(max_length=200)),
                ("provider", models.CharField(blank=True, default="", max_length=200)),
                ("window", models.BigIntegerField()),
                ("max_input", models.BigIntegerField(null=True)),
                ("note", models.TextField(blank=True, default="")),
                ("by_name", models.CharField(blank=True, default="", max_length=200)),
                ("created_at", models.BigIntegerField()),
                ("ended_at", models.BigIntegerField(null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="store.agent",
                    ),
                ),
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
            options={
                "constraints": (
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("project", "agent", "model", "provider"),
                        name="override_of_agent_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("agent", None), ("ended_at", None)),
                        fields=("project", "model", "provider"),
                        name="override_of_project_once",
                    ),
                ),
            },
        ),
    )
