"""Incidents, cause groups, and what people note about them."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (
        ("store", "0006_imports_and_connections"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    )

    operations = (
        migrations.CreateModel(
            name="CauseGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=1000)),
                ("cause", models.TextField()),
                ("opened_at", models.BigIntegerField()),
                ("closed_at", models.BigIntegerField(null=True)),
                ("alerted_at", models.BigIntegerField(null=True)),
                ("count", models.IntegerField(default=0)),
                ("owner_name", models.CharField(blank=True, default="", max_length=200)),
                ("owned_at", models.BigIntegerField(null=True)),
                (
                    "owner",
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
            name="Incident",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(default="automatic", max_length=20)),
                ("opened_seq", models.BigIntegerField()),
                ("opened_at", models.BigIntegerField()),
                ("started_seq", models.BigIntegerField()),
                ("started_at", models.BigIntegerField()),
                ("closed_seq", models.BigIntegerField(null=True)),
                ("closed_at", models.BigIntegerField(null=True)),
                ("root", models.CharField(blank=True, default="", max_length=60)),
                ("state", models.CharField(blank=True, default="", max_length=20)),
                ("severity", models.CharField(blank=True, default="", max_length=10)),
                ("sentence", models.TextField(blank=True, default="")),
                ("view", models.TextField(blank=True, default="")),
                ("judged", models.TextField(blank=True, default="")),
                ("owner_name", models.CharField(blank=True, default="", max_length=200)),
                ("owned_at", models.BigIntegerField(null=True)),
                ("verdict", models.CharField(blank=True, default="", max_length=20)),
                ("verdict_text", models.TextField(blank=True, default="")),
                ("verdict_by", models.CharField(blank=True, default="", max_length=200)),
                ("verdict_at", models.BigIntegerField(null=True)),
                ("created_by", models.CharField(blank=True, default="", max_length=200)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="store.agent"
                    ),
                ),
                (
                    "chat",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="store.chat"),
                ),
                (
                    "group",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="store.causegroup",
                    ),
                ),
                (
                    "owner",
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
            name="IncidentNote",
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
                ("edited_at", models.BigIntegerField(null=True)),
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
                    "incident",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="store.incident"
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="causegroup",
            index=models.Index(fields=["project", "key"], name="cause_group_by_key"),
        ),
        migrations.AddIndex(
            model_name="causegroup",
            index=models.Index(
                condition=models.Q(("closed_at__isnull", True)),
                fields=["project"],
                name="cause_group_open",
            ),
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(fields=["project", "-opened_at"], name="incident_by_time"),
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(
                condition=models.Q(("closed_at__isnull", True)),
                fields=["project"],
                name="incident_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.UniqueConstraint(
                condition=models.Q(("kind", "automatic")),
                fields=("chat", "opened_seq"),
                name="incident_once",
            ),
        ),
    )
