"""What one shift tells the next."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from ctxhealth.store.models.fleet import Project


class HandoverNote(models.Model):
    """One version of the hand-over note, Markdown. A saved note is never changed: the newest is
    the note, the others are its history."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    text = models.TextField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True, default="")
    at = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.by_name} {self.at}"
