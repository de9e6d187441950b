"""Who reports: projects, agents, their tokens and streams."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Project(models.Model):
    """Owns everything; every other table reaches it in at most two steps."""

    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=60, unique=True)

    def __str__(self) -> str:
        return self.slug


class Agent(models.Model):
    """One agent process by name. ``conn_no`` is the fence: only its newest connection writes."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    name = models.CharField(max_length=200)
    runtime = models.CharField(max_length=200, blank=True, default="")
    runtime_version = models.CharField(max_length=200, blank=True, default="")
    sdk = models.CharField(max_length=200, blank=True, default="")
    caps = models.TextField(default="{}")  # wire Capabilities as JSON
    conn_no = models.BigIntegerField(default=0)
    epoch = models.CharField(max_length=200, blank=True, default="")
    imported = models.BooleanField(default=False)  # no process: session files that were brought
    connected = models.BooleanField(default=False)
    connected_at = models.BigIntegerField(null=True)
    disconnected_at = models.BigIntegerField(null=True)
    disconnect_reason = models.CharField(max_length=200, blank=True, default="")
    last_seen_at = models.BigIntegerField(null=True)
    skew_ms = models.BigIntegerField(null=True)
    events = models.BigIntegerField(default=0)
    duplicates = models.BigIntegerField(default=0)
    conflicts = models.BigIntegerField(default=0)
    rejects = models.BigIntegerField(default=0)
    gaps = models.BigIntegerField(default=0)  # events that the agent says it dropped
    created_at = models.BigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["project", "name"], name="agent_name_once"),)

    def __str__(self) -> str:
        return self.name


class AgentConnection(models.Model):
    """One connection from its hello to its end; of each agent the newest ones are kept."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE)
    conn_no = models.BigIntegerField()
    runtime_version = models.CharField(max_length=200, blank=True, default="")
    sdk = models.CharField(max_length=200, blank=True, default="")
    epoch = models.CharField(max_length=200, blank=True, default="")
    skew_ms = models.BigIntegerField(null=True)
    connected_at = models.BigIntegerField()
    ended_at = models.BigIntegerField(null=True)
    reason = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["agent", "conn_no"], name="agent_connection_once"),
        )

    def __str__(self) -> str:
        return f"{self.agent_id}#{self.conn_no}"


class AgentToken(models.Model):
    """A bearer token. Only the sha256 of its 256-bit secret is kept; it is shown once."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    name = models.CharField(max_length=200)
    key_id = models.CharField(max_length=32, unique=True)
    digest = models.CharField(max_length=64)
    scopes = models.CharField(max_length=200)  # words with blanks between, sorted
    agent_name = models.CharField(max_length=200, null=True)  # null: any agent
    created_at = models.BigIntegerField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    expires_at = models.BigIntegerField(null=True)
    revoked_at = models.BigIntegerField(null=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    last_used_at = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return self.name

    @property
    def scope_set(self) -> frozenset[str]:
        return frozenset(self.scopes.split())


class Stream(models.Model):
    """(agent, epoch) with its head: the highest ``seq`` that is durable here.

    ``trimmed`` of its events went with chats that retention deleted.
    """

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE)
    epoch = models.CharField(max_length=200)
    head = models.BigIntegerField(default=0)
    trimmed = models.BigIntegerField(default=0)
    conn_no = models.BigIntegerField(default=0)
    created_at = models.BigIntegerField()
    last_at = models.BigIntegerField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["agent", "epoch"], name="stream_epoch_once"),
        )

    def __str__(self) -> str:
        return f"{self.agent_id}/{self.epoch}"


class ServerInfo(models.Model):
    """One row. ``incarnation`` changes when the database was restored, and agents resend."""

    incarnation = models.CharField(max_length=40)
    boots = models.BigIntegerField(default=0)
    created_at = models.BigIntegerField()

    def __str__(self) -> str:
        return self.incarnation
