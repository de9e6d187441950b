"""One Struct per event type. Sizes are tokens unless the name says bytes, chars, ms or images.

Absent is unknown (``None``), never 0. ``ts`` is milliseconds since the epoch on the agent's
clock. Fields that a Struct does not know are kept in the stored body and ignored here.
"""

from __future__ import annotations

from typing import Annotated, Any, Union

import msgspec
from msgspec import Meta

from ctxhealth.wire.parts import (
    AddedItem,
    Content,
    Counted,
    Holder,
    Release,
    SnapshotBulk,
    SnapshotCurrent,
    SnapshotItem,
    SnapshotTopic,
    StepResult,
    Summarizer,
    Trigger,
    Usage,
    Utility,
)
from ctxhealth.wire.types import (
    ClearedHow,
    CommandState,
    CompactionTrigger,
    Count,
    Ident,
    ItemKind,
    LatchKind,
    LatchScope,
    Millis,
    ModelError,
    NoteLevel,
    Phase,
    Purpose,
    Role,
    Scope,
    Sentence,
    Text,
    TurnKind,
    TurnOutcome,
    Unusable,
    Word,
)


class Envelope(
    msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="type", gc=False
):
    """What every event carries. ``seq`` is 1, 2, 3... in its stream, without holes."""

    seq: Annotated[int, Meta(ge=1, le=2**53 - 1)]
    ts: Millis
    chat: Ident | None = None


class ChatFacts(Envelope, frozen=True, omit_defaults=True, kw_only=True):
    """Facts about a chat; a field that is absent leaves the earlier value in place."""

    title: Sentence | None = None
    model: Word | None = None
    provider: Word | None = None
    parent: Ident | None = None
    window: Count | None = None
    max_input: Count | None = None
    max_output: Count | None = None
    reserve: Count | None = None
    trigger: Trigger | None = None
    history_limit: Count | None = None
    bytes_limit: Count | None = None
    tokenizer: Word | None = None
    system: Count | None = None
    tools: Count | None = None
    utility: Utility | None = None
    labels: dict[str, Word] | None = None


class ChatOpened(ChatFacts, frozen=True, omit_defaults=True, kw_only=True, tag="chat.opened"):
    """A chat exists. Sent again after a restart it changes only what it names."""


class ChatUpdated(ChatFacts, frozen=True, omit_defaults=True, kw_only=True, tag="chat.updated"):
    """Facts about the chat changed."""


class ChatClosed(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="chat.closed"):
    """The chat ended; it stays on record."""

    reason: Sentence | None = None


class TurnStarted(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="turn.started"):
    """A user message (or task) began a loop. A ``user`` turn makes the user wait."""

    turn: Ident
    kind: TurnKind = "user"


class TurnEnded(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="turn.ended"):
    turn: Ident
    outcome: TurnOutcome
    error: Sentence | None = None


class MessageAdded(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="message.added"):
    """An item entered the history. ``calls`` are ids it opens, ``answers`` ids it closes."""

    id: Ident
    role: Role
    kind: ItemKind
    tokens: Count | None = None
    bytes: Count | None = None
    chars: Count | None = None
    calls: list[Ident] | None = None
    answers: list[Ident] | None = None
    name: Word | None = None
    turn: Ident | None = None
    topic: Ident | None = None
    excerpt: Annotated[str, Meta(max_length=400)] | None = None
    text: Text | None = None
    read: bool | None = None
    hash: Word | None = None
    unusable: Unusable | None = None


class CountedMessage(
    MessageAdded, frozen=True, omit_defaults=True, kw_only=True, tag="message.added"
):
    """A message as the store keeps it where the server had to count; agents cannot send it."""

    counted: Counted


class HistorySnapshot(
    Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="history.snapshot"
):
    """The history's structure. A large one comes as ``parts`` events with one ``revision``."""

    revision: Ident
    part: Annotated[int, Meta(ge=1, le=1000)] | None = None
    parts: Annotated[int, Meta(ge=1, le=1000)] | None = None
    system: Count | None = None
    tools: Count | None = None
    extras: Count | None = None
    bulks: list[SnapshotBulk] = []
    topics: list[SnapshotTopic] = []
    current: SnapshotCurrent | None = None
    protected: Count | None = None
    images: Count | None = None
    request_bytes: Count | None = None
    history: Count | None = None
    order: list[SnapshotItem] | None = None


class RequestSent(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="request.sent"):
    """A model call left. ``local`` is the agent's count; ``delta``: only what is new is sent."""

    request: Ident
    purpose: Purpose = "chat"
    local: Count | None = None
    max_output: Count | None = None
    bytes: Count | None = None
    images: Count | None = None
    attempt: Ident | None = None
    revision: Ident | None = None
    delta: bool | None = None


class ModelReplied(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="model.replied"):
    """The reply to one request. One reply in several rows is still one event."""

    request: Ident
    purpose: Purpose = "chat"
    usage: Usage | None = None
    finish: Word | None = None
    content: Content | None = None
    model: Word | None = None
    synthetic: bool | None = None
    ms: Millis | None = None


class ModelFailed(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="model.failed"):
    request: Ident
    error: ModelError
    purpose: Purpose = "chat"
    status: Annotated[int, Meta(ge=0, le=999)] | None = None
    code: Word | None = None
    detail: Sentence | None = None
    stated_window: Count | None = None
    stated_prompt: Count | None = None
    ms: Millis | None = None


class CompactionStarted(
    Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="compaction.started"
):
    attempt: Ident
    trigger: CompactionTrigger
    scope: Scope = "prompt"
    phase: Phase | None = None
    before: Count | None = None
    input_hash: Word | None = None
    lease_s: Annotated[int, Meta(ge=1, le=86_400)] | None = None
    revision: Ident | None = None


class CompactionFinished(
    Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="compaction.finished"
):
    """How an attempt ended, in the agent's words; the outcome is computed from the facts."""

    attempt: Ident
    reported: Word
    scope: Scope = "prompt"
    reason: Sentence | None = None
    before: Count | None = None
    after: Count | None = None
    after_scope: Scope | None = None
    steps: list[StepResult] | None = None
    summarizer: Summarizer | None = None
    removed: list[Ident] | None = None
    added: list[AddedItem] | None = None
    meanwhile: Count | None = None
    input_hash: Word | None = None
    revision: Ident | None = None
    lossy: bool | None = None
    emptied: bool | None = None
    backup: Sentence | None = None
    trigger: CompactionTrigger | None = None
    inferred: bool | None = None
    ms: Millis | None = None


class LatchSet(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="latch.set"):
    """Something now keeps compaction from running."""

    latch: Ident
    scope: LatchScope
    kind: LatchKind | None = None
    key: Word | None = None
    reason: Sentence | None = None
    attempt: Ident | None = None
    tokens: Count | None = None
    bypass: list[Word] | None = None
    release: Release | None = None
    holder: Holder | None = None


class LatchCleared(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="latch.cleared"):
    latch: Ident
    how: ClearedHow
    command: Ident | None = None


class GuardRefused(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="guard.refused"):
    """The agent refused to send before any provider call (the code is CONTEXT_UNFIT or its own)."""

    count: Count | None = None
    limit: Count | None = None
    window: Count | None = None
    reserve: Count | None = None
    code: Word | None = None


class ReplyEmpty(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="reply.empty"):
    """``n`` replies in a row had no meaningful content."""

    n: Count
    request: Ident | None = None
    prompt: Count | None = None
    completion: Count | None = None
    finish: Word | None = None
    retried: bool | None = None


class AgentStopped(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="agent.stopped"):
    reason: Sentence
    count: Count | None = None
    limit: Count | None = None


class UsageUpdate(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="usage.update"):
    """``used`` tokens of ``size`` (the Agent Client Protocol's shape): the agent's own count."""

    used: Count
    size: Count | None = None


class CommandProgress(
    Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="command.progress"
):
    command: Ident
    state: CommandState
    reason: Sentence | None = None
    before: Count | None = None
    after: Count | None = None
    backup: Sentence | None = None
    detail: Any = None


class Gap(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="gap"):
    """Events that the agent dropped on purpose, said aloud so that no hole is ever inferred."""

    count: Annotated[int, Meta(ge=1, le=2**53 - 1)]
    reason: Sentence


class Note(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="note"):
    """Free text for the log. ``code`` names a reader's trouble, such as ``unreadable_line``."""

    text: Sentence
    level: NoteLevel = "info"
    code: Word | None = None
    count: Count | None = None


class ServerConnected(
    Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="server.connected"
):
    """The chat's agent connected. Written by the server into the chat's own order.

    ``posts``: it reports by HTTP, without a connection of its own and so without commands.
    """

    conn_no: Count = 0
    read_only: bool = False
    posts: bool = False
    commands: list[Word] = []
    skew_ms: int | None = None
    # Of the agent's stream: another one than before means that the agent restarted.
    epoch: Ident | None = None


class ServerDisconnected(
    Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="server.disconnected"
):
    """The chat's agent is gone. ``restart``: not by its own doing, the server was away."""

    conn_no: Count = 0
    reason: Word = ""
    restart: bool = False


class ServerTick(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="server.tick"):
    """A deadline of this chat passed; ``ts`` is the server's time. Time-based findings read it."""


class ServerCommand(Envelope, frozen=True, omit_defaults=True, kw_only=True, tag="server.command"):
    """A command changed state by the server's hand (queued, sent, expired, cancelled, unknown)."""

    command: Ident
    kind: Word
    state: CommandState
    reason: Sentence | None = None
    by: Word | None = None


class UnknownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a type this version does not know: stored, shown, folded as nothing."""

    seq: int
    ts: int
    type: str
    chat: str | None = None


AGENT_EVENTS: tuple[type[Envelope], ...] = (
    ChatOpened, ChatUpdated, ChatClosed, TurnStarted, TurnEnded, MessageAdded, HistorySnapshot,
    RequestSent, ModelReplied, ModelFailed, CompactionStarted, CompactionFinished, LatchSet,
    LatchCleared, GuardRefused, ReplyEmpty, AgentStopped, UsageUpdate, CommandProgress, Gap, Note,
)  # fmt: skip
SERVER_EVENTS: tuple[type[Envelope], ...] = (
    ServerConnected, ServerDisconnected, ServerTick, ServerCommand,
)  # fmt: skip

AgentEvent = Union[  # noqa: UP007
    ChatOpened, ChatUpdated, ChatClosed, TurnStarted, TurnEnded, MessageAdded, HistorySnapshot,
    RequestSent, ModelReplied, ModelFailed, CompactionStarted, CompactionFinished, LatchSet,
    LatchCleared, GuardRefused, ReplyEmpty, AgentStopped, UsageUpdate, CommandProgress, Gap, Note,
]  # fmt: skip
ServerEvent = ServerConnected | ServerDisconnected | ServerTick | ServerCommand
StoredEvent = Union[  # noqa: UP007
    ChatOpened, ChatUpdated, ChatClosed, TurnStarted, TurnEnded, MessageAdded, HistorySnapshot,
    RequestSent, ModelReplied, ModelFailed, CompactionStarted, CompactionFinished, LatchSet,
    LatchCleared, GuardRefused, ReplyEmpty, AgentStopped, UsageUpdate, CommandProgress, Gap, Note,
    ServerConnected, ServerDisconnected, ServerTick, ServerCommand,
]  # fmt: skip
Event = StoredEvent | UnknownEvent


def _tag(struct: type[Envelope]) -> str:
    return str(struct.__struct_config__.tag)


EVENT_TYPES: dict[str, type[Envelope]] = {
    _tag(struct): struct for struct in (*AGENT_EVENTS, *SERVER_EVENTS)
}
AGENT_TYPES: frozenset[str] = frozenset(_tag(struct) for struct in AGENT_EVENTS)
