"""What is remembered of a chat's facts, limits, meter, history and requests.

Changed in place by the fold and bounded whatever the chat's length: lists are rings,
dictionaries are capped, texts are clipped.
"""

from __future__ import annotations

import msgspec

from ctxhealth.core.model import Candidate

OPEN_REQUESTS = 16
OPEN_CALLS = 64
RECENT_PAIRS = 128
HEAVY_ITEMS = 20
GROWTH_STEPS = 10
CALIBRATION_PAIRS = 20
TREND_POINTS = 60
DURATIONS = 20
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
    # What stands beside a count in doubt, and where that is from: last, after, input, added.
    instead: int | None = None
    instead_from: str = ""
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
    identical_from: int = 0
    identical_items: int = 0
    truncated: bool = False
    expected: int | None = None
    # The agent's own gauge: how many replies it has shown the same count for.
    frozen: int = 0
    frozen_answered: int = 0
    frozen_added: int = 0
    frozen_from: int = 0
    bytes_ok: bool = False
    mismatch: bool = False
    steps_alike: int = 0
    no_fall: int = 0
    completion: int | None = None


class Heavy(Part):
    tokens: int
    id: str
    kind: str
    role: str
    name: str | None = None
    excerpt: str | None = None
    seq: int = 0
    in_context: bool | None = None
    estimate: bool = False


class OpenCall(Part):
    at: int
    seq: int
    item: str
    # A provider took a request with it, or no request holds it: its result is not missed.
    settled: bool = False


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
    # Its turn has ended: nobody waits for it any more.
    over: bool = False


class Requests(Part):
    open: dict[str, OpenRequest] = {}
    lost: int = 0
    answered: int = 0
    durations: list[int] = []
    # Answered requests above the trigger since the last attempt.
    above: int = 0
    # Those of them that came close to the budget, and whether a turn began since the first.
    tight: int = 0
    turn_passed: bool = False
    # Compactions in a row that began within a turn as soon as it was above the trigger.
    prompt_folds: int = 0
    overflow: bool = False
    overflow_seq: int | None = None
    overflow_prompt: int | None = None
    overflow_output: int | None = None
    too_large: bool = False
    retry_local: int | None = None
    retries: int = 0
    failed: int = 0
    # Rows that stand for a request without a call of the model.
    synthetic: int = 0
    last_error: str | None = None
    guard_count: int | None = None
    guard_limit: int | None = None
