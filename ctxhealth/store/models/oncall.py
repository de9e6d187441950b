"""What one shift tells the next."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from ctxhealth.store.models.fleet import Project
from ctxhealth.store.models.incidents import CauseGroup


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


class Silence(models.Model):
    """One cause that somebody wants to hear nothing of until ``until``; ended early by a person.

    Its chats stay where they are and are not counted among what needs somebody.
    """

    group = models.ForeignKey(CauseGroup, on_delete=models.CASCADE)
    until = models.BigIntegerField()
    reason = models.TextField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True, default="")
    at = models.BigIntegerField()
    ended_at = models.BigIntegerField(null=True)
    ended_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        indexes = (
            models.Index(fields=["until"], name="silence_open", condition=Q(ended_at__isnull=True)),
        )

    def __str__(self) -> str:
        return f"{self.group_id} until {self.until}"
