"""What the fold judged: attempts, latches and findings. Each keeps its whole view as JSON."""

from __future__ import annotations

from django.db import models

from ctxhealth.store.models.chats import Chat


class CompactionAttempt(models.Model):
    """One compaction attempt; ``view`` is an ``AttemptView``."""

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    attempt = models.CharField(max_length=200)
    first_seq = models.BigIntegerField()
    outcome = models.CharField(max_length=30)
    at = models.BigIntegerField(null=True)
    view = models.TextField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["chat", "attempt"], name="attempt_once"),)
        indexes = (models.Index(fields=["at", "outcome"], name="attempt_by_time"),)

    def __str__(self) -> str:
        return self.attempt


class Latch(models.Model):
    """One latch each time it was set; ``view`` is a ``LatchView``."""

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    latch = models.CharField(max_length=200)
    set_seq = models.BigIntegerField()
    kind = models.CharField(max_length=30)
    justified = models.BooleanField(null=True)
    set_at = models.BigIntegerField()
    cleared_at = models.BigIntegerField(null=True)
    view = models.TextField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["chat", "latch", "set_seq"], name="latch_once"),
        )

    def __str__(self) -> str:
        return self.latch


class Finding(models.Model):
    """One condition from its opening to its end; ``view`` is a ``FindingView``."""

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    code = models.CharField(max_length=40)
    since_seq = models.BigIntegerField()
    severity = models.CharField(max_length=10)
    since = models.BigIntegerField()
    closed_at = models.BigIntegerField(null=True)
    view = models.TextField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["chat", "code", "since_seq"], name="finding_once"),
        )
        indexes = (
            models.Index(
                fields=["code"],
                name="finding_open_by_code",
                condition=models.Q(closed_at__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return self.code
