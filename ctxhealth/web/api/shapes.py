"""What the API answers: the core's own views plus the numbers that name them.

The Structs are both the encoder's input and the schemas in the OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import fields as struct_fields

from ctxhealth.core.model import (
    AttemptView,
    ChatDetail,
    ChatSummary,
    FindingView,
    HeavyItem,
    LatchView,
    ReadingPoint,
    Structure,
)
from ctxhealth.wire.types import CommandKind


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Base of answers. Times are ms since the epoch, counts are tokens, None is unknown."""


class ChatRow(ChatSummary, frozen=True, kw_only=True):
    """A chat in a list. ``id`` names it here, ``chat`` is the agent's own id for it."""

    id: int
    chat: str
    agent: str
    version: int


class ChatPage(Shape, frozen=True, kw_only=True):
    """``next`` is the cursor of the next page, None on the last.

    ``total`` and ``counts_by_state`` obey every filter but ``state``.
    """

    chats: list[ChatRow]
    next: str | None
    total: int
    counts_by_state: dict[str, int]


class CommandShape(Shape, frozen=True, kw_only=True):
    """A command and how far it came; ``detail`` is what the agent reported."""

    id: str
    chat: int | None
    agent: str
    kind: str
    state: str
    state_reason: str
    open: bool
    args: dict[str, Any]
    reason: str
    by: str
    created_at: int
    deliver_by: int
    lease_until: int | None
    sent_at: int | None
    received_at: int | None
    started_at: int | None
    ended_at: int | None
    cancel_asked_at: int | None
    before: int | None
    after: int | None
    backup: str
    detail: Any


class RejectShape(Shape, frozen=True, kw_only=True):
    """Why an event was refused for good: ``path`` names the value at fault."""

    code: str | None
    path: str | None
    detail: str | None


class EventShape(Shape, frozen=True, kw_only=True):
    """One line of the log. ``body`` is the event as stored; ``rejected`` is set on tombstones.

    ``seq`` is the agent's own number, None for the server's events.
    """

    chat_seq: int
    type: str
    ts: int
    received: int
    at: int
    seq: int | None
    by_server: bool
    rejected: RejectShape | None
    body: msgspec.Raw


class EventPage(Shape, frozen=True, kw_only=True):
    """``next`` is the ``after`` of the next page, None where the log ends for now."""

    events: list[EventShape]
    next: int | None


class ReadingList(Shape, frozen=True, kw_only=True):
    """The load over time, thinned so that no peak and no fall is lost."""

    readings: list[ReadingPoint]


class StateAt(Shape, frozen=True, kw_only=True):
    """The chat as of one event of its log, as the core of today judges it."""

    id: int
    chat_seq: int
    detail: ChatDetail


class CommandRequest(Shape, frozen=True, kw_only=True):
    """``idempotency_key``: the same key gives the same command, however often it is sent."""

    kind: CommandKind
    reason: Annotated[str, Meta(min_length=1, max_length=500)]
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=200)]
    args: dict[str, Any] = {}


class CommandDocument(Shape, frozen=True, kw_only=True):
    command: CommandShape


def _row_fields() -> list[Any]:
    own = ("latches", "findings")
    return [
        (f.name, f.type)
        if f.default is msgspec.NODEFAULT
        else (f.name, f.type, msgspec.field(default=f.default))
        for f in struct_fields(ChatRow)
        if f.name not in own
    ]


# A row whose latches and findings are in full, so that no field has two shapes in one class.
ChatInFull = msgspec.defstruct(
    "ChatInFull",
    [
        *_row_fields(),
        ("chat_seq", int),
        ("latches", list[LatchView]),
        ("findings", list[FindingView]),
        ("attempts", list[AttemptView]),
        ("structure", Structure),
        ("heavy", list[HeavyItem]),
        ("commands", list[CommandShape]),
        ("children", list[ChatRow]),
    ],
    namespace={"__doc__": "A chat in full: its row, with all that its page shows."},
    frozen=True,
    kw_only=True,
)
