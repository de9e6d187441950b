"""Chats that came in bundles, and where each was first."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (
        ("store", "0007_incidents"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    )

    operations = (
        migrations.CreateModel(
            name="ImportedBundle",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("origin", models.CharField(max_length=200)),
                ("origin_chat", models.BigIntegerField()),
                ("origin_agent", models.CharField(max_length=200)),
                ("head", models.BigIntegerField(default=0)),
                ("audit", models.TextField(blank=True, default="")),
                ("exported_at", models.BigIntegerField()),
                ("exported_by", models.CharField(blank=True, default="", max_length=200)),
                ("imported_at", models.BigIntegerField()),
                ("by_name", models.CharField(blank=True, default="", max_length=200)),
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
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, to="store.chat"
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
                        fields=("project", "origin", "origin_chat"), name="imported_bundle_once"
                    )
                ],
            },
        ),
    )
