"""What admins configure at run time, and how far chats are judged by it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from ctxhealth.store.models.fleet import Project

THRESHOLD = "threshold."
RETENTION_DAYS = "retention.days"


class Setting(models.Model):
    """One value somebody set. A new one for the same name ends the old one, which stays.

    ``name`` is ``threshold.<field of Thresholds>`` or ``retention.days``; ``value`` is a number
    in the unit the code uses (ms, share, count, days). Times are server milliseconds.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    name = models.CharField(max_length=80)
    value = models.FloatField()
    reason = models.TextField(blank=True, default="")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True, default="")
    created_at = models.BigIntegerField()
    ended_at = models.BigIntegerField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["project", "name"], condition=Q(ended_at=None), name="setting_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"


class Judging(models.Model):
    """How far stored chats are judged by the present rules. One row for each project.

    ``wanted`` grows by one with every change of the rules; ``judged`` is the one that every chat
    was judged by. A pass under way is for ``passing``: ``cursor`` is the last chat it did,
    ``changed`` how many came out differently.
    """

    project = models.OneToOneField(Project, on_delete=models.CASCADE)
    wanted = models.BigIntegerField(default=0)
    judged = models.BigIntegerField(default=0)
    passing = models.BigIntegerField(default=0)
    cursor = models.BigIntegerField(default=0)
    done = models.BigIntegerField(default=0)
    changed = models.BigIntegerField(default=0)
    started_at = models.BigIntegerField(null=True)
    finished_at = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"{self.judged} of {self.wanted}"
