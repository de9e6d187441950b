"""What the API answers: the core's own views plus the numbers that name them.

The Structs are both the encoder's input and the schemas in the OpenAPI document.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
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


class ChatRow(ChatSummary, frozen=True, kw_only=True):
    """A chat in a list. ``id`` names it here, ``chat`` is the agent's own id for it."""

    id: int
    chat: str
    agent: str
    version: int


class ChatPage(msgspec.Struct, frozen=True, kw_only=True):
    """``next`` is the cursor of the next page, None on the last."""

    chats: list[ChatRow]
    next: str | None
    total: int
    counts_by_state: dict[str, int]


class CommandShape(msgspec.Struct, frozen=True, kw_only=True):
    """A command and how far it came. Times in ms since the epoch, counts in tokens."""

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
    before: int | None
    after: int | None
    backup: str | None
    detail: str


class EventShape(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log. ``body`` is the event as stored; ``rejected`` says why it is none."""

    chat_seq: int
    type: str
    ts: int
    received: int
    seq: int | None
    rejected: bool
    body: dict[str, Any] | msgspec.Raw


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """``next`` is the ``after`` of the next page, None where the log ends."""

    events: list[EventShape]
    next: int | None


class ReadingList(msgspec.Struct, frozen=True, kw_only=True):
    readings: list[ReadingPoint]


class StateAt(msgspec.Struct, frozen=True, kw_only=True):
    """The chat as of one event of its log, as the core of today judges it."""

    chat_seq: int
    detail: ChatDetail


class CommandRequest(msgspec.Struct, frozen=True, kw_only=True):
    """``idempotency_key``: the same key gives the same command, however often it is sent."""

    kind: str
    reason: str
    idempotency_key: str
    args: dict[str, Any] | UnsetType = UNSET


class CommandDocument(msgspec.Struct, frozen=True, kw_only=True):
    command: CommandShape


_OWN_IN_FULL = ("latches", "findings")
_ROW_FIELDS = [
    (f.name, f.type, msgspec.field(default=f.default))
    if f.default is not msgspec.NODEFAULT
    else (f.name, f.type)
    for f in struct_fields(ChatRow)
    if f.name not in _OWN_IN_FULL
]

# The row with its latches and findings in full, and what only one chat's page needs.
ChatInFull = msgspec.defstruct(
    "ChatInFull",
    [
        *_ROW_FIELDS,
        ("chat_seq", int),
        ("latches", tuple[LatchView, ...]),
        ("findings", tuple[FindingView, ...]),
        ("attempts", tuple[AttemptView, ...]),
        ("structure", Structure),
        ("heavy", tuple[HeavyItem, ...]),
        ("commands", list[CommandShape]),
        ("children", list[ChatRow]),
    ],
    frozen=True,
    kw_only=True,
    namespace={"__doc__": "A chat in full: the row, and all that its page shows."},
)


def row_shape(summary: ChatSummary, *, pk: int, chat: str, agent: str, version: int) -> ChatRow:
    return ChatRow(id=pk, chat=chat, agent=agent, version=version, **shallow(summary))


def shallow(struct: msgspec.Struct) -> dict[str, Any]:
    """Field values as they are, one level deep."""
    return {name: getattr(struct, name) for name in struct.__struct_fields__}
