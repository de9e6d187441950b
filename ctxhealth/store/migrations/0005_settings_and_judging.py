"""Settings that admins change at run time; how far chats are judged by them; trimmed streams."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (
        ("store", "0004_sort_by_load_and_compaction"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    )

    operations = (
        migrations.AddField(
            model_name="stream",
            name="trimmed",
            field=models.BigIntegerField(default=0),
        ),
        migrations.CreateModel(
            name="Judging",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("wanted", models.BigIntegerField(default=0)),
                ("judged", models.BigIntegerField(default=0)),
                ("passing", models.BigIntegerField(default=0)),
                ("cursor", models.BigIntegerField(default=0)),
                ("done", models.BigIntegerField(default=0)),
                ("changed", models.BigIntegerField(default=0)),
                ("started_at", models.BigIntegerField(null=True)),
                ("finished_at", models.BigIntegerField(null=True)),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, to="store.project"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Setting",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("value", models.FloatField()),
                ("reason", models.TextField(blank=True, default="")),
                ("by_name", models.CharField(blank=True, default="", max_length=200)),
                ("created_at", models.BigIntegerField()),
                ("ended_at", models.BigIntegerField(null=True)),
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
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("project", "name"),
                        name="setting_once",
                    )
                ],
            },
        ),
    )
