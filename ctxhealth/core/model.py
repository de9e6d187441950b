"""The words the core speaks to store, API and pages: one Struct per thing, one name per field.

Quantities are tokens unless a name says otherwise; times are milliseconds since the epoch on the
server's clock (of the transcript for imported chats). ``None`` is unknown, never 0.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Source(StrEnum):
    """Where a reading comes from, best first."""

    PROVIDER = "provider"
    ERROR = "error"
    AGENT = "agent"
    LOCAL = "local"
    PENDING = "pending"
    UNKNOWN = "unknown"


class WindowSource(StrEnum):
    """Who says how large the window is, in order of effect."""

    OPERATOR = "operator"
    EVIDENCE = "evidence"
    AGENT = "agent"
    TABLE = "table"
    UNKNOWN = "unknown"


class TriggerSource(StrEnum):
    DECLARED = "declared"
    LEARNED = "learned"
    ASSUMED = "assumed"
    UNKNOWN = "unknown"


class State(StrEnum):
    """One word for a chat, worst first (the order of domain.md section 7)."""

    BROKEN = "broken"
    STOPPED = "stopped"
    HUNG = "hung"
    SILENT = "silent"
    BLOCKED = "blocked"
    STALLED = "stalled"
    LOOPING = "looping"
    CANNOT_FIT = "cannot_fit"
    OVER = "over"
    RECOVERING = "recovering"
    SATURATED = "saturated"
    UNRELIABLE = "unreliable"
    DEGRADED = "degraded"
    WATCH = "watch"
    HEALTHY = "healthy"


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Outcome(StrEnum):
    """How a compaction attempt ended, computed from its facts."""

    RUNNING = "running"
    DURABILITY_FAILED = "durability_failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    TIMED_OUT = "timed_out"
    NOT_NEEDED = "not_needed"
    SUMMARIZER_FAILED = "summarizer_failed"
    FELL_BACK = "fell_back"
    NOT_COMPARABLE = "not_comparable"
    REDUCED = "reduced"
    NOTHING_FOLDABLE = "nothing_foldable"
    NO_PROGRESS = "no_progress"
    GREW = "grew"
    UNKNOWN = "unknown"


class Relief(StrEnum):
    RELIEVED = "relieved"
    NOT_RELIEVED = "not_relieved"
    UNCONFIRMED = "unconfirmed"


class Connection(StrEnum):
    LIVE = "live"
    LATE = "late"
    OFFLINE = "offline"
    CLOSED = "closed"
    IMPORTED = "imported"
    READ_ONLY = "read_only"
    POSTS = "posts"


class View(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Base of what is shown. Every field is always present in JSON."""


class Reading(View, frozen=True, kw_only=True):
    """One count of what the model was sent, with its provenance.

    ``reliable`` is False where a finding says that the meter cannot be right (shown struck
    through). For ``pending`` the value is the agent's own after-count, an estimate, or None.
    """

    value: int | None = None
    scope: str = "prompt"
    source: Source = Source.UNKNOWN
    at: int | None = None
    request: str | None = None
    chat_seq: int | None = None
    reliable: bool = True
    reason: str | None = None


class Candidate(View, frozen=True, kw_only=True):
    """One claim about the window; ``detail`` says where from (model id, error text, operator)."""

    source: WindowSource
    value: int
    max_input: int | None = None
    detail: str = ""


class Window(View, frozen=True, kw_only=True):
    value: int | None = None
    source: WindowSource = WindowSource.UNKNOWN
    at_least: bool = False
    max_input: int | None = None
    candidates: tuple[Candidate, ...] = ()


class TriggerView(View, frozen=True, kw_only=True):
    """Where the agent starts compacting, in its own scope; ``on_strip`` in prompt tokens."""

    value: int | None = None
    inclusive: bool = False
    scope: str = "prompt"
    source: TriggerSource = TriggerSource.UNKNOWN
    on_strip: int | None = None


class Headroom(View, frozen=True, kw_only=True):
    """What is left, always named; negative past the line."""

    trigger: int | None = None
    budget: int | None = None
    window: int | None = None


class HistoryLoad(View, frozen=True, kw_only=True):
    value: int | None = None
    limit: int | None = None
    source: Source = Source.UNKNOWN


class Segment(View, frozen=True, kw_only=True):
    """One part of the prompt on the strip; ``estimate`` when no count of its own exists.

    ``kind``: system, tools, extras, bulks, topics, current, unassigned. Parts add up to the load.
    """

    kind: str
    tokens: int
    estimate: bool = False


class Waiting(View, frozen=True, kw_only=True):
    since: int
    turn: str | None = None


class LatchBrief(View, frozen=True, kw_only=True):
    latch: str
    kind: str
    justified: bool | None


class AttemptBrief(View, frozen=True, kw_only=True):
    """``inferred``: no record of it, only a load that stays."""

    outcome: Outcome
    before: int | None
    after: int | None
    at: int
    lossy: bool | None = None
    relief: Relief = Relief.UNCONFIRMED
    inferred: bool = False


class FindingBrief(View, frozen=True, kw_only=True):
    code: str
    severity: Severity
    sentence: str
    since: int


class ChatSummary(View, frozen=True, kw_only=True):
    """One chat as a row of the board and of ``GET /api/v1/chats``.

    ``since`` is when the present state began; ``severity`` that of the worst open finding (None
    when healthy); ``advice`` is the action that ``headline`` ends with, where it ends with one;
    ``trend`` the last 60 loads, oldest first, None where unknown. ``incident`` is the event that
    opened the open incident, ``cause`` the key of its cause; a key that begins with ``agent/``
    means this agent's chats alone.
    """

    title: str | None = None
    model: str | None = None
    provider: str | None = None
    runtime: str | None = None
    state: State = State.HEALTHY
    severity: Severity | None = None
    since: int = 0
    headline: str = ""
    advice: str = ""
    waiting_since: int | None = None
    connection: Connection = Connection.LIVE
    load: Reading = Reading()
    projection: int | None = None
    window: Window = Window()
    reserve: int | None = None
    reserve_assumed: bool = True
    budget: int | None = None
    trigger: TriggerView = TriggerView()
    headroom: Headroom = Headroom()
    forecast: int | None = None
    history: HistoryLoad = HistoryLoad()
    calibration: float | None = None
    segments: tuple[Segment, ...] = ()
    floor: int | None = None
    requests: int = 0
    turns: int = 0
    compactions: int = 0
    outcomes: dict[str, int] = {}
    last_compaction: AttemptBrief | None = None
    latches: tuple[LatchBrief, ...] = ()
    empty_replies: int = 0
    unusable_replies: int = 0
    last_reply_at: int | None = None
    findings: tuple[FindingBrief, ...] = ()
    trend: tuple[int | None, ...] = ()
    parent: str | None = None
    images: int | None = None
    request_bytes: int | None = None
    bytes_limit: int | None = None
    unreadable_lines: int = 0
    gaps: int = 0
    rejects: int = 0
    opened_at: int | None = None
    last_event_at: int | None = None
    turn_open: bool = False
    command_kinds: tuple[str, ...] = ()
    incident: int | None = None
    cause: str | None = None


class StepView(View, frozen=True, kw_only=True):
    step: str
    before: int | None = None
    after: int | None = None
    calls: int | None = None


class SummarizerView(View, frozen=True, kw_only=True):
    model: str | None = None
    provider: str | None = None
    window: int | None = None
    calls: int | None = None
    input: int | None = None
    output: int | None = None
    error: str | None = None
    detail: str | None = None


class AttemptView(View, frozen=True, kw_only=True):
    """One compaction attempt. ``flags``: emptied, ineffective, over_compacted, inferred."""

    attempt: str
    outcome: Outcome
    trigger: str
    scope: str
    started_seq: int | None
    finished_seq: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    phase: str | None = None
    before: int | None = None
    after: int | None = None
    after_scope: str | None = None
    freed: int | None = None
    flags: tuple[str, ...] = ()
    relief: Relief = Relief.UNCONFIRMED
    needed: bool | None = None
    reported: str | None = None
    reason: str | None = None
    error_class: str | None = None
    steps: tuple[StepView, ...] = ()
    summarizer: SummarizerView | None = None
    input_hash: str | None = None
    ms: int | None = None
    backup: str | None = None
    lossy: bool | None = None
    removed: int | None = None
    added: int | None = None
    meanwhile: int | None = None


class Advice(View, frozen=True, kw_only=True):
    """What to do or not to do. ``action`` is a command kind, or ``manual`` for a written step.

    ``available`` is False where this chat's agent cannot do it (``why`` then says so).
    """

    action: str
    text: str
    available: bool = True
    why: str | None = None
    args: dict[str, str] = {}


class LatchView(View, frozen=True, kw_only=True):
    latch: str
    kind: str
    scope: str
    justified: bool | None
    why: str
    set_at: int
    set_seq: int
    reason: str | None = None
    attempt: str | None = None
    calls: int | None = None
    tokens: int | None = None
    key: str | None = None
    bypass: tuple[str, ...] = ()
    lapses: str = ""
    holder: str | None = None
    cleared_at: int | None = None
    cleared_how: str | None = None
    cleared_by: str | None = None
    inferred: bool = False
    recommended: tuple[Advice, ...] = ()
    discouraged: tuple[Advice, ...] = ()


class FindingView(View, frozen=True, kw_only=True):
    """``evidence`` are chat_seq of events; ``count`` how often the condition was met since."""

    code: str
    severity: Severity
    state: State
    title: str
    sentence: str
    since: int
    since_seq: int
    count: int = 1
    evidence: tuple[int, ...] = ()
    closed_at: int | None = None
    closed_seq: int | None = None
    suppressed_by: str | None = None
    recommended: tuple[Advice, ...] = ()
    discouraged: tuple[Advice, ...] = ()


class HeavyItem(View, frozen=True, kw_only=True):
    """One of the heaviest items; ``in_context`` None where membership is not reported.

    ``estimate``: nobody counted its tokens, they are made of its characters.
    """

    id: str
    kind: str
    role: str
    tokens: int
    name: str | None = None
    excerpt: str | None = None
    in_context: bool | None = None
    chat_seq: int | None = None
    estimate: bool = False


class Block(View, frozen=True, kw_only=True):
    """A block of the structure: system, tools, extras, bulk, topic or current."""

    kind: str
    id: str
    tokens: int | None
    title: str | None = None
    messages: int | None = None
    largest: int | None = None
    estimate: bool = False


class Structure(View, frozen=True, kw_only=True):
    """``source``: snapshot (the agent's own), items (from messages seen), or unknown."""

    source: str = "unknown"
    revision: str | None = None
    at_seq: int | None = None
    blocks: tuple[Block, ...] = ()


class ReadingPoint(View, frozen=True, kw_only=True):
    """One point of the load series."""

    chat_seq: int
    at: int
    load: int | None
    source: Source
    window: int | None = None
    budget: int | None = None
    trigger: int | None = None
    history: int | None = None
    local: int | None = None


class ChatDetail(View, frozen=True, kw_only=True):
    """A chat as its page and ``GET /api/v1/chats/<id>`` show it, as of ``chat_seq``."""

    summary: ChatSummary
    chat_seq: int
    headline: str
    headline_advice: Advice | None = None
    findings: tuple[FindingView, ...] = ()
    latches: tuple[LatchView, ...] = ()
    heavy: tuple[HeavyItem, ...] = ()
    structure: Structure = Structure()
    running_attempt: AttemptView | None = None
    turn: str | None = None
    turn_kind: str | None = None
