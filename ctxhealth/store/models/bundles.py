"""Chats that came in bundles: where each was first, and what came with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from django.db import models

from ctxhealth.store.models.chats import Chat
from ctxhealth.store.models.fleet import Project

if TYPE_CHECKING:
    from ctxhealth.store.bundles.form import BundleAudit


class ImportedBundle(models.Model):
    """One chat of another database. ``head`` is the last event that came with it.

    ``origin`` is that database's incarnation, ``origin_chat`` the chat's number there; ``audit``
    the trail's lines that came with it, as JSON: they are no lines of this server's own trail.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    chat = models.OneToOneField(Chat, on_delete=models.CASCADE)
    origin = models.CharField(max_length=200)
    origin_chat = models.BigIntegerField()
    origin_agent = models.CharField(max_length=200)
    head = models.BigIntegerField(default=0)
    audit = models.TextField(blank=True, default="")
    exported_at = models.BigIntegerField()
    exported_by = models.CharField(max_length=200, blank=True, default="")
    imported_at = models.BigIntegerField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["project", "origin", "origin_chat"], name="imported_bundle_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.origin} {self.origin_chat}"

    def audit_of(self, incident: int) -> list[BundleAudit]:
        """The lines that came with this incident."""
        return self.audit_lines().get(str(incident), [])

    def audit_lines(self) -> dict[str, list[BundleAudit]]:
        """By the incident's number here."""
        from ctxhealth.store.bundles.form import BundleAudit

        lines = dict[str, list[BundleAudit]]
        return msgspec.json.decode(self.audit, type=lines) if self.audit else {}
