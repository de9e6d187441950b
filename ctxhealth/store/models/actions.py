"""What people do: commands, the audit trail, one-time logins."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from ctxhealth.store.models.chats import Chat
from ctxhealth.store.models.fleet import Agent, Project

OPEN_STATES = ("queued", "sent", "received", "waiting", "started")
FINAL_STATES = ("succeeded", "failed", "refused", "expired", "cancelled", "unknown")


class Command(models.Model):
    """One press of a button. ``id`` is a UUIDv7; states go forward only, final is final.

    ``mutating`` commands are at most one open per chat, held by the database itself.
    ``expected_*`` is the fence; ``deliver_by`` and ``lease_until`` are server milliseconds.
    """

    id = models.CharField(primary_key=True, max_length=40)
    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE)
    chat = models.ForeignKey(Chat, null=True, on_delete=models.CASCADE)
    kind = models.CharField(max_length=40)
    args = models.TextField(default="{}")
    expected_epoch = models.CharField(max_length=200, blank=True, default="")
    expected_compaction = models.BigIntegerField(null=True)
    expected_latch = models.CharField(max_length=200, blank=True, default="")
    mutating = models.BooleanField(default=True)
    idempotency_key = models.CharField(max_length=200)
    reason = models.TextField(blank=True, default="")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True, default="")
    state = models.CharField(max_length=20, default="queued")
    state_reason = models.TextField(blank=True, default="")
    open = models.BooleanField(default=True)
    created_at = models.BigIntegerField()
    deliver_by = models.BigIntegerField()
    lease_s = models.IntegerField()
    lease_until = models.BigIntegerField(null=True)
    sent_at = models.BigIntegerField(null=True)
    sent_conn = models.BigIntegerField(null=True)
    received_at = models.BigIntegerField(null=True)
    started_at = models.BigIntegerField(null=True)
    ended_at = models.BigIntegerField(null=True)
    cancel_asked_at = models.BigIntegerField(null=True)
    cancel_by = models.CharField(max_length=200, blank=True, default="")
    before = models.BigIntegerField(null=True)
    after = models.BigIntegerField(null=True)
    backup = models.TextField(blank=True, default="")
    detail = models.TextField(blank=True, default="")
    follows = models.ForeignKey("self", null=True, on_delete=models.SET_NULL)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["chat"],
                condition=Q(open=True, mutating=True),
                name="command_one_open_per_chat",
            ),
            models.UniqueConstraint(fields=["agent", "idempotency_key"], name="command_idempotent"),
        )
        indexes = (
            models.Index(fields=["agent"], name="command_open", condition=Q(open=True)),
            models.Index(fields=["chat", "created_at"], name="command_by_chat"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class AuditEntry(models.Model):
    """Who did what, when, on what, why, with what result; also what was refused. Append only."""

    at = models.BigIntegerField(db_index=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True, default="")
    action = models.CharField(max_length=60)
    target = models.CharField(max_length=300, blank=True, default="")
    chat = models.ForeignKey(Chat, null=True, on_delete=models.SET_NULL)
    command = models.ForeignKey(Command, null=True, on_delete=models.SET_NULL)
    reason = models.TextField(blank=True, default="")
    result = models.CharField(max_length=60)
    detail = models.TextField(blank=True, default="")  # JSON object
    ip = models.CharField(max_length=60, blank=True, default="")
    request_id = models.CharField(max_length=60, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.action} {self.result}"


class LoginLink(models.Model):
    """A one-time login; only the sha256 of its secret is kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.BigIntegerField()
    expires_at = models.BigIntegerField()
    used_at = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"login of {self.user_id}"
