"""Chats, their log and what is folded from it."""

from __future__ import annotations

from django.db import models

from ctxhealth.store.models.fleet import Agent, Project, Stream


class Chat(models.Model):
    """One conversation: head of its log and the folded projection that the board shows.

    ``chat_seq`` is the log's head, ``version`` grows by one with every commit that touches the
    chat, ``summary`` is a ``ChatSummary`` as JSON and the columns beneath repeat what the board
    filters and sorts by. ``deadline`` is when the server must append a tick.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE)
    external_id = models.CharField(max_length=200)
    chat_seq = models.BigIntegerField(default=0)
    version = models.BigIntegerField(default=0)
    conn_no = models.BigIntegerField(default=0)
    fold_version = models.IntegerField(default=0)
    opened_at = models.BigIntegerField()
    summary = models.TextField()
    state = models.CharField(max_length=20)
    severity_rank = models.SmallIntegerField(default=3)
    headroom_trigger = models.BigIntegerField(null=True)
    load_share = models.BigIntegerField(null=True)  # millionths of the budget
    compacted_at = models.BigIntegerField(null=True)
    waiting_since = models.BigIntegerField(null=True)
    model = models.CharField(max_length=200, blank=True, default="")
    title = models.CharField(max_length=400, blank=True, default="")
    last_outcome = models.CharField(max_length=30, blank=True, default="")
    latched = models.BooleanField(default=False)
    last_event_at = models.BigIntegerField(null=True)
    deadline = models.BigIntegerField(null=True)
    connection = models.CharField(max_length=20)
    closed = models.BooleanField(default=False)
    parent_external = models.CharField(max_length=200, blank=True, default="")
    parent = models.ForeignKey("self", null=True, on_delete=models.SET_NULL)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["agent", "external_id"], name="chat_once"),)
        indexes = (
            models.Index(fields=["severity_rank", "id"], name="chat_by_severity"),
            models.Index(
                fields=["deadline"],
                name="chat_by_deadline",
                condition=models.Q(deadline__isnull=False),
            ),
            models.Index(fields=["state"], name="chat_by_state"),
        )

    def __str__(self) -> str:
        return self.external_id


class Event(models.Model):
    """One line of the log, append only.

    Agent events have ``stream`` and ``seq``, the server's own have neither; ``chat`` and
    ``chat_seq`` are absent for agent-level events. ``at`` is the time the fold saw: ``received``
    for live chats, ``ts`` for transcripts. A tombstone's body is a ``note`` with code
    ``rejected`` so that it replays. Foreign keys are not checked by the database: the one writer
    makes both ends in one transaction, and ``verify`` compares.
    """

    chat = models.ForeignKey(
        Chat, null=True, on_delete=models.CASCADE, db_constraint=False, db_index=False
    )
    chat_seq = models.BigIntegerField(null=True)
    stream = models.ForeignKey(
        Stream, null=True, on_delete=models.CASCADE, db_constraint=False, db_index=False
    )
    seq = models.BigIntegerField(null=True)
    type = models.CharField(max_length=200)
    ts = models.BigIntegerField()
    received = models.BigIntegerField()
    at = models.BigIntegerField()
    body = models.TextField()
    tombstone = models.BooleanField(default=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["chat", "chat_seq"], name="event_chat_seq_once"),
            models.UniqueConstraint(fields=["stream", "seq"], name="event_stream_seq_once"),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.chat_seq}"


class Item(models.Model):
    """Membership of one history item over time; ``place`` is its topic, bulk or ``current``."""

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    item = models.CharField(max_length=200)
    role = models.CharField(max_length=20)
    kind = models.CharField(max_length=20)
    tokens = models.BigIntegerField(null=True)
    place = models.CharField(max_length=200, blank=True, default="")
    name = models.CharField(max_length=200, blank=True, default="")
    excerpt = models.CharField(max_length=400, blank=True, default="")
    calls = models.TextField(blank=True, default="")  # JSON list of call ids, or empty
    answers = models.TextField(blank=True, default="")
    read = models.BooleanField(null=True)
    added_seq = models.BigIntegerField()
    removed_seq = models.BigIntegerField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["chat", "item"], name="item_once"),)

    def __str__(self) -> str:
        return self.item


class Checkpoint(models.Model):
    """The folded state as of ``chat_seq``, so that any moment of the log is cheap to reach."""

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    chat_seq = models.BigIntegerField()
    fold_version = models.IntegerField()
    state = models.BinaryField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["chat", "chat_seq"], name="checkpoint_once"),
        )

    def __str__(self) -> str:
        return f"{self.chat_id}@{self.chat_seq}"


class Reading(models.Model):
    """One point of the load series, tokens."""

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, db_constraint=False, db_index=False)
    chat_seq = models.BigIntegerField()
    at = models.BigIntegerField()
    load = models.BigIntegerField(null=True)
    source = models.CharField(max_length=20)
    window = models.BigIntegerField(null=True)
    budget = models.BigIntegerField(null=True)
    trigger = models.BigIntegerField(null=True)
    history = models.BigIntegerField(null=True)
    local = models.BigIntegerField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["chat", "chat_seq"], name="reading_once"),)

    def __str__(self) -> str:
        return f"{self.chat_id}@{self.chat_seq}"
