"""What is remembered of a chat: changed in place by the fold, bounded whatever its length.

Nothing here grows with the chat. Lists are rings, dictionaries are capped, texts are clipped;
the items themselves live in the store's own table. Times are server milliseconds.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ctxhealth.core.model import AttemptView, Candidate, LatchView

# Raised whenever the same events fold to another state: stored states are then rebuilt.
FOLD_VERSION = 1

OPEN_REQUESTS = 16
OPEN_CALLS = 64
RECENT_PAIRS = 128
HEAVY_ITEMS = 20
GROWTH_STEPS = 10
CALIBRATION_PAIRS = 20
TREND_POINTS = 60
DURATIONS = 20
RECENT_ATTEMPTS = 8
RECENT_MARKS = 12
OPEN_LATCHES = 16
RECENT_COMMANDS = 16
TEXT = 300

Fact = int | float | str | bool | None


class Part(msgspec.Struct, array_like=True, kw_only=True):
    """Base of the state's parts."""


class Facts(Part):
    """What the agent declared; None where it did not."""

    title: str | None = None
    model: str | None = None
    provider: str | None = None
    model_from_reply: bool = False
    parent: str | None = None
    runtime: str | None = None
    window: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    reserve: int | None = None
    trigger_declared: bool = False
    trigger_tokens: int | None = None
    trigger_ratio: float | None = None
    trigger_inclusive: bool = False
    trigger_scope: str = "prompt"
    history_limit: int | None = None
    bytes_limit: int | None = None
    tokenizer: str | None = None
    utility_model: str | None = None
    utility_provider: str | None = None
    utility_window: int | None = None


class Limits(Part):
    """The effective window, reserve, budget and trigger, computed when an input changes."""

    window: int | None = None
    window_source: str = "unknown"
    at_least: bool = False
    max_input: int | None = None
    candidates: list[Candidate] = []
    evidence: int | None = None
    evidence_at_least: bool = False
    evidence_detail: str = ""
    reserve: int | None = None
    reserve_assumed: bool = True
    cap: int | None = None
    # A cap at or above this was proved not to be reserved.
    cap_refuted: int | None = None
    proven: int | None = None
    budget: int | None = None
    trigger: int | None = None
    trigger_inclusive: bool = False
    trigger_scope: str = "prompt"
    trigger_source: str = "unknown"
    on_strip: int | None = None
    learned: list[int] = []


class Meter(Part):
    """The newest reading, what was added since, and how far the agent's own count is off."""

    value: int | None = None
    source: str = "unknown"
    at: int | None = None
    request: str | None = None
    seq: int | None = None
    doubt: str | None = None
    pending: bool = False
    estimate: int | None = None
    # Compactions that changed the history: a request built before the last one is stale.
    generation: int = 0
    added: int = 0
    added_before: int = 0
    good: int | None = None
    good_source: str = "unknown"
    previous: int | None = None
    step: int | None = None
    jump_item: str | None = None
    growth: list[int] = []
    pairs: list[float] = []
    calibration: float | None = None
    crossed: bool = False
    local: int | None = None
    trend: list[int | None] = []
    identical: int = 0
    identical_added: int = 0
    truncated: bool = False
    bytes_ok: bool = False
    mismatch: bool = False
    steps_alike: int = 0
    no_fall: int = 0
    completion: int | None = None
    readings: int = 0


class Heavy(Part):
    tokens: int
    id: str
    kind: str
    role: str
    name: str | None = None
    excerpt: str | None = None
    seq: int = 0
    in_context: bool | None = None


class OpenCall(Part):
    at: int
    seq: int
    item: str


class Pair(Part):
    call: str
    call_item: str
    result_item: str


class History(Part):
    """Structure as totals: the agent's snapshot, carried on by the items seen since."""

    system: int | None = None
    tools: int | None = None
    extras: int | None = None
    bulks: int | None = None
    topics: int | None = None
    current: int | None = None
    protected: int | None = None
    value: int | None = None
    source: str = "unknown"
    estimate: bool = False
    revision: str | None = None
    snapshot_seq: int | None = None
    parts_seen: int = 0
    topic: str | None = None
    items: int = 0
    unknown_items: int = 0
    images: int | None = None
    request_bytes: int | None = None
    membership: bool = False
    heavy: list[Heavy] = []
    heavy_floor: int = 0
    heaviest: int = 0
    biggest_new: str | None = None
    biggest_new_tokens: int = 0
    open_calls: dict[str, OpenCall] = {}
    calls_seen: int = 0
    calls_lost: int = 0
    pairs: list[Pair] = []
    orphan_calls: list[str] = []
    orphan_results: list[str] = []
    orphan_cut: bool = False
    orphan_start: bool = False
    orphan_named: str | None = None
    last_users: list[str] = []
    compacted: bool = False
    had_system: bool = False
    lost_system: bool = False
    lost_tail: str | None = None
    stale_tail: str | None = None
    order_system: bool = False
    order_user: str | None = None
    order_newest: bool = False
    snapshot_calls: dict[str, str] = {}
    snapshot_orphans: list[str] = []


class OpenRequest(Part):
    at: int
    ts: int
    seq: int
    utility: bool
    local: int | None = None
    max_output: int | None = None
    bytes: int | None = None
    generation: int = 0
    delta: bool = False
    added: int = 0
    attempt: str | None = None


class Requests(Part):
    open: dict[str, OpenRequest] = {}
    lost: int = 0
    answered: int = 0
    durations: list[int] = []
    # Answered requests above the trigger since the last attempt.
    above: int = 0
    overflow: bool = False
    overflow_seq: int | None = None
    overflow_prompt: int | None = None
    too_large: bool = False
    retry_local: int | None = None
    retries: int = 0
    failed: int = 0
    # Rows that stand for a request without a call of the model.
    synthetic: int = 0
    last_error: str | None = None
    guard_count: int | None = None
    guard_limit: int | None = None


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
    empty_finish: str | None = None
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
    running: dict[str, AttemptView] = {}
    leases: dict[str, int] = {}
    base: dict[str, list[int]] = {}
    recent: list[AttemptView] = []
    finished: int = 0
    outcomes: dict[str, int] = {}
    # The newest attempt whose relief the next reading decides, and the generation it made.
    unjudged: str | None = None
    unjudged_generation: int = 0
    no_relief: int = 0
    no_relief_calls: int = 0
    no_relief_calls_known: bool = True
    no_relief_from: int | None = None
    no_relief_freed: int = 0
    no_relief_scope: str = "prompt"
    no_relief_cause: str | None = None
    summarizer_row: int = 0
    summarizer_calls: int = 0
    summarizer_input: int | None = None
    summarizer_class: str | None = None
    summarizer_model: str | None = None
    summarizer_fixed_seq: int | None = None
    emptied: str | None = None
    emptied_seq: int | None = None
    grew_before: int | None = None
    grew_after: int | None = None
    ineffective: bool = False
    lossy: str | None = None
    refused: str | None = None
    marks: list[Mark] = []
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
    open: dict[str, LatchRecord] = {}
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
    commands: list[str] = []
    skew_ms: int | None = None
    closed: bool = False
    offline: bool = False


class Intake(Part):
    gaps: int = 0
    gap_reason: str | None = None
    rejects: int = 0
    reject_code: str | None = None
    unreadable: int = 0
    late: bool = False


class CommandRecord(Part):
    kind: str
    state: str
    at: int
    by: str | None = None


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
    evidence: list[int] = []


class ChatState(Part):
    chat: str
    opened_at: int
    seq: int = 0
    clock: int = 0
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
    commands: dict[str, CommandRecord] = {}
    recovery: Recovery | None = None
    findings: dict[str, Finding] = {}
    state: str = "healthy"
    severity: str | None = None
    state_since: int = 0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(ChatState)


def new_state(chat: str, opened_at: int) -> ChatState:
    """The state before the first event."""
    return ChatState(chat=chat, opened_at=opened_at, state_since=opened_at, clock=opened_at)


def encode_state(state: ChatState) -> bytes:
    """The state as bytes; only states of the same FOLD_VERSION may be read back."""
    return _ENCODER.encode(state)


def decode_state(data: bytes) -> ChatState:
    """Inverse of ``encode_state``. Raises msgspec.MsgspecError where the bytes do not fit."""
    state: ChatState = _DECODER.decode(data)
    return state
