"""Incidents, the groups that their causes form, and what people write about them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from ctxhealth.store.models.chats import Chat
from ctxhealth.store.models.fleet import Agent, Project

AUTOMATIC, REVIEW = "automatic", "review"


class CauseGroup(models.Model):
    """Chats in trouble for one cause; alerted once, however many there are.

    ``key`` and ``cause`` (a ``Cause`` as JSON) say which; ``count`` is of its incidents, closed
    ones too. It closes with its last open incident and opens again where the same cause comes
    back soon after.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    key = models.CharField(max_length=1_000)
    cause = models.TextField()
    opened_at = models.BigIntegerField()
    closed_at = models.BigIntegerField(null=True)
    alerted_at = models.BigIntegerField(null=True)
    count = models.IntegerField(default=0)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    owner_name = models.CharField(max_length=200, blank=True, default="")
    owned_at = models.BigIntegerField(null=True)

    class Meta:
        indexes = (
            models.Index(fields=["project", "key"], name="cause_group_by_key"),
            models.Index(
                fields=["project"], name="cause_group_open", condition=Q(closed_at__isnull=True)
            ),
        )

    def __str__(self) -> str:
        return self.key


class Incident(models.Model):
    """One incident of a chat, or a range that somebody reviews (``kind`` review).

    ``view`` is an ``IncidentView`` by the present rules, empty where they see no incident or for
    a review; ``judged`` is the view as it was when it closed, empty before, which no later version
    rewrites. The columns beneath repeat what lists filter and sort by.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE)
    group = models.ForeignKey(CauseGroup, null=True, on_delete=models.SET_NULL)
    kind = models.CharField(max_length=20, default=AUTOMATIC)
    opened_seq = models.BigIntegerField()
    opened_at = models.BigIntegerField()
    started_seq = models.BigIntegerField()
    started_at = models.BigIntegerField()
    closed_seq = models.BigIntegerField(null=True)
    closed_at = models.BigIntegerField(null=True)
    root = models.CharField(max_length=60, blank=True, default="")
    state = models.CharField(max_length=20, blank=True, default="")
    severity = models.CharField(max_length=10, blank=True, default="")
    sentence = models.TextField(blank=True, default="")
    view = models.TextField(blank=True, default="")
    judged = models.TextField(blank=True, default="")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    owner_name = models.CharField(max_length=200, blank=True, default="")
    owned_at = models.BigIntegerField(null=True)
    verdict = models.CharField(max_length=20, blank=True, default="")
    verdict_text = models.TextField(blank=True, default="")
    verdict_by = models.CharField(max_length=200, blank=True, default="")
    verdict_at = models.BigIntegerField(null=True)
    created_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["chat", "opened_seq"], condition=Q(kind=AUTOMATIC), name="incident_once"
            ),
        )
        indexes = (
            models.Index(fields=["project", "-opened_at"], name="incident_by_time"),
            models.Index(
                fields=["project"], name="incident_open", condition=Q(closed_at__isnull=True)
            ),
        )

    def __str__(self) -> str:
        return f"{self.chat_id}@{self.opened_seq}"


class IncidentNote(models.Model):
    """What somebody wrote about an incident, in Markdown."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE)
    text = models.TextField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True, default="")
    at = models.BigIntegerField()
    edited_at = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"note {self.pk}"
