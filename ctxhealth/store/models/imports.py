"""Session files that people brought, and how far each session was read."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from ctxhealth.store.models.chats import Chat
from ctxhealth.store.models.fleet import Agent, Project, Stream

OPEN_STATES = ("queued", "reading")


class Import(models.Model):
    """One file that somebody brought. ``spooled`` names it in the spool while it is needed.

    ``state``: queued, reading, done, known (all of it was here before), refused, failed or
    interrupted; ``reason`` says why, in a sentence. ``bytes_read`` counts the file's own bytes,
    ``events`` those that are new. ``troubles`` is a JSON list of what could not be read.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    batch = models.CharField(max_length=40)  # files that were dropped together
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True, default="")
    name = models.CharField(max_length=300)
    spooled = models.CharField(max_length=80, blank=True, default="")
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, blank=True, default="")
    state = models.CharField(max_length=20, default="queued")
    reason = models.TextField(blank=True, default="")
    what = models.CharField(max_length=100, blank=True, default="")
    bytes_read = models.BigIntegerField(default=0)
    lines = models.BigIntegerField(default=0)
    events = models.BigIntegerField(default=0)
    unreadable = models.BigIntegerField(default=0)
    chats = models.BigIntegerField(default=0)
    troubles = models.TextField(blank=True, default="")
    resumed = models.IntegerField(default=0)
    created_at = models.BigIntegerField()
    started_at = models.BigIntegerField(null=True)
    ended_at = models.BigIntegerField(null=True)
    chat = models.ForeignKey(Chat, null=True, on_delete=models.SET_NULL)
    incident = models.BigIntegerField(null=True)

    class Meta:
        indexes = (
            models.Index(
                fields=["id"], name="import_open", condition=Q(state__in=("queued", "reading"))
            ),
            models.Index(fields=["sha256"], name="import_by_content"),
        )

    def __str__(self) -> str:
        return self.name


class ImportPlace(models.Model):
    """How far one session was read: the next file of it goes on there.

    ``seq`` events of ``stream`` were told of the first ``offset`` bytes, whose sha256 is
    ``digest``; ``reader`` is the reader's state as packed JSON.
    """

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE)
    session = models.CharField(max_length=200)
    stream = models.ForeignKey(Stream, on_delete=models.CASCADE)
    seq = models.BigIntegerField()
    offset = models.BigIntegerField()
    digest = models.CharField(max_length=64)
    reader = models.BinaryField()
    at = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["agent", "session"], name="import_place_once"),
        )

    def __str__(self) -> str:
        return self.session
