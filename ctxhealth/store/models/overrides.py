"""What operators say about windows, above every other source."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from ctxhealth.store.models.fleet import Agent, Project


class WindowOverride(models.Model):
    """One word about a window. A new one for the same chats ends the old one, which stays.

    ``model`` is an id or a pattern with ``*`` and ``?``; ``provider`` blank is any, ``agent`` null
    is every agent of the project. Sizes are tokens, times server milliseconds.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    agent = models.ForeignKey(Agent, null=True, on_delete=models.CASCADE)
    model = models.CharField(max_length=200)
    provider = models.CharField(max_length=200, blank=True, default="")
    window = models.BigIntegerField()
    max_input = models.BigIntegerField(null=True)
    note = models.TextField(blank=True, default="")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True, default="")
    created_at = models.BigIntegerField()
    ended_at = models.BigIntegerField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["project", "agent", "model", "provider"],
                condition=Q(ended_at=None),
                name="override_of_agent_once",
            ),
            models.UniqueConstraint(
                fields=["project", "model", "provider"],
                condition=Q(ended_at=None, agent=None),
                name="override_of_project_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.model}: {self.window}"
