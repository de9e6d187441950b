"""What is remembered of a chat: changed in place by the fold, bounded whatever its length.

Nothing here grows with the chat. Lists are rings, dictionaries are capped, texts are clipped;
the items themselves live in the store's own table. Times are server milliseconds.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec

from ctxhealth.core.incidents_parts import OpenIncident
from ctxhealth.core.model import AttemptView, LatchView, View
from ctxhealth.core.parts import Fact, Facts, History, Limits, Meter, Part, Requests

# Raised whenever the same events fold to another state: stored states are then rebuilt.
FOLD_VERSION = 13

RECENT_ATTEMPTS = 8
RECENT_MARKS = 12
OPEN_LATCHES = 16
RECENT_COMMANDS = 16


class Turns(Part):
    turn: str | None = None
    kind: str | None = None
    open: bool = False
    opened_seq: int | None = None
    count: int = 0
    user_count: int = 0
    waiting_since: int | None = None
    waiting_turn: str | None = None
    replies: int = 0
    failing: int = 0
    stopped: bool = False
    stopped_seq: int | None = None
    stopped_reason: str | None = None
    stopped_count: int | None = None
    stopped_limit: int | None = None
    last_error: str | None = None
    answered: int = 0
    attempts: int = 0
    row_with_attempt: int = 0


class Replies(Part):
    empty_row: int = 0
    empty_cause: str | None = None
    empty_prompt: int | None = None
    empty_completion: int | None = None
    empty_total: int = 0
    unusable_row: int = 0
    unusable_kind: str | None = None
    nothing_visible: bool = False
    last_at: int | None = None
    repeat_hash: str | None = None
    repeats: int = 0


class Mark(Part):
    """One compaction that ran, for loops: counts of requests and user turns at its end."""

    attempt: str
    requests: int
    turns: int
    relief: str
    outcome: str
    needed: bool | None
    freed: int | None


class Compactions(Part):
    running: dict[str, AttemptView] = msgspec.field(default_factory=dict)
    leases: dict[str, int] = msgspec.field(default_factory=dict)
    base: dict[str, list[int]] = msgspec.field(default_factory=dict)
    recent: list[AttemptView] = msgspec.field(default_factory=list)
    finished: int = 0
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    # The newest attempt whose relief the next reading decides, and the generation it made.
    unjudged: str | None = None
    unjudged_generation: int = 0
    no_relief: int = 0
    no_relief_calls: int = 0
    no_relief_calls_known: bool = True
    no_relief_from: int | None = None
    no_relief_freed: int = 0
    no_relief_freed_known: bool = True
    no_relief_scope: str = "prompt"
    no_relief_cause: str | None = None
    no_relief_inferred: int = 0
    # Answered requests in a row that were well below the trigger though nothing gave relief.
    eased: int = 0
    summarizer_row: int = 0
    summarizer_calls: int = 0
    summarizer_input: int | None = None
    summarizer_class: str | None = None
    summarizer_model: str | None = None
    summarizer_fixed_seq: int | None = None
    # Summaries in a row that failed while something else freed tokens; relief does not end them.
    stand_ins: int = 0
    stand_in_calls: int = 0
    stand_in_input: int | None = None
    emptied: str | None = None
    emptied_seq: int | None = None
    grew_before: int | None = None
    grew_after: int | None = None
    ineffective: bool = False
    lossy: str | None = None
    refused: str | None = None
    marks: list[Mark] = msgspec.field(default_factory=list)
    summary_input: int | None = None
    summary_output: int | None = None
    span: int | None = None


class LatchRecord(Part):
    """An open latch. ``view`` is what was last shown; the rest decides release and advice."""

    view: LatchView
    rescue_blocked: bool = False
    until: int | None = None
    turn_end: bool = False
    success: bool = False
    holder_alive: bool | None = None


class Latches(Part):
    open: dict[str, LatchRecord] = msgspec.field(default_factory=dict)
    lost: int = 0
    total: int = 0


class Link(Part):
    """The agent's connection as this chat's own log tells it."""

    state: str = "imported"
    read_only: bool = False
    connected: bool = False
    since: int | None = None
    conn_no: int = 0
    epoch: str | None = None
    commands: list[str] = msgspec.field(default_factory=list)
    skew_ms: int | None = None
    closed: bool = False
    offline: bool = False
    # It is the server that was away: agents get longer to come back.
    restarted: bool = False


class Intake(Part):
    gaps: int = 0
    gap_reason: str | None = None
    rejects: int = 0
    reject_code: str | None = None
    unreadable: int = 0
    conflicts: int = 0
    conflict: str | None = None


class CommandRecord(Part):
    """``at`` and ``seq`` are of the first word of it."""

    kind: str
    state: str
    at: int
    by: str | None = None
    seq: int = 0


class Recovery(Part):
    """From a command's success until a later reading or turn decides."""

    command: str
    kind: str
    at: int
    seq: int
    generation: int
    reading: bool = False
    answer: bool = False


class Finding(Part):
    """An open finding; ``facts`` are the numbers its sentence is made of."""

    severity: str
    since: int
    since_seq: int
    facts: tuple[Fact, ...]
    count: int = 1
    evidence: list[int] = msgspec.field(default_factory=list)


class ChatState(Part):
    chat: str
    opened_at: int
    seq: int = 0
    last_event_at: int | None = None
    ticked_at: int = 0
    events: int = 0
    facts: Facts = msgspec.field(default_factory=Facts)
    limits: Limits = msgspec.field(default_factory=Limits)
    meter: Meter = msgspec.field(default_factory=Meter)
    history: History = msgspec.field(default_factory=History)
    requests: Requests = msgspec.field(default_factory=Requests)
    turns: Turns = msgspec.field(default_factory=Turns)
    replies: Replies = msgspec.field(default_factory=Replies)
    compactions: Compactions = msgspec.field(default_factory=Compactions)
    latches: Latches = msgspec.field(default_factory=Latches)
    link: Link = msgspec.field(default_factory=Link)
    intake: Intake = msgspec.field(default_factory=Intake)
    commands: dict[str, CommandRecord] = msgspec.field(default_factory=dict)
    recovery: Recovery | None = None
    findings: dict[str, Finding] = msgspec.field(default_factory=dict)
    incident: OpenIncident | None = None
    state: str = "healthy"
    severity: str | None = None
    state_since: int = 0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(ChatState)


def shape_of(*bases: type[msgspec.Struct]) -> bytes:
    """Four bytes that change with any field of the Structs below ``bases``."""
    found = sorted(
        (cls.__name__, cls.__struct_fields__, tuple(map(str, cls.__annotations__.values())))
        for base in bases
        for cls in base.__subclasses__()
    )
    return crc32(repr(found).encode()).to_bytes(4, "big")


# Parts are stored without names: bytes of another shape could be read into the wrong fields.
_SHAPE = shape_of(Part, View)


def new_state(chat: str, opened_at: int) -> ChatState:
    """The state before the first event."""
    return ChatState(chat=chat, opened_at=opened_at, state_since=opened_at)


def encode_state(state: ChatState) -> bytes:
    """The state as bytes, behind the mark of its shape."""
    return _SHAPE + _ENCODER.encode(state)


def decode_state(data: bytes) -> ChatState:
    """Inverse of ``encode_state``. Raises msgspec.MsgspecError where the bytes do not fit."""
    if data[: len(_SHAPE)] != _SHAPE:
        raise msgspec.DecodeError("the state was stored in another shape")
    state: ChatState = _DECODER.decode(memoryview(data)[len(_SHAPE) :])
    return state
