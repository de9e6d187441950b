"""Latches that keep compaction from running."""

from __future__ import annotations

from ctxhealth.core.findings.definition import (
    CRITICAL,
    WARNING,
    Definition,
    Facts,
    Verdict,
    int_of,
    text_of,
)
from ctxhealth.core.meter import load_now
from ctxhealth.core.model import Advice, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState, LatchRecord
from ctxhealth.core.wording import number, plural

KINDS = {
    "structural": "nothing could be folded",
    "already_compacted": "it was already compacted",
    "summarizer": "the summarizer failed",
    "cooldown": "a timer runs",
    "lock_held": "another process holds the lock",
    "exhausted": "all attempts are used up",
    "no_gain": "the same input gains nothing",
    "open_call": "an old call has no result",
    "inferred": "nothing is tried any more",
    "unknown": "no reason was given",
}


def _pick(state: ChatState, unjustified: bool) -> LatchRecord | None:
    """The oldest latch of the asked-for sort; one that blocked a rescue first."""
    found = [
        record
        for record in state.latches.open.values()
        if (record.view.justified is False) is unjustified
    ]
    blocked = [record for record in found if record.rescue_blocked]
    return next(iter(blocked or found), None)


def _verdict(state: ChatState, t: Thresholds, record: LatchRecord | None) -> Verdict:
    if record is None:
        return None
    load, budget = load_now(state), state.limits.budget
    full = load is not None and budget is not None and load >= budget
    failing = state.turns.failing >= t.failing_turns
    severe = full or failing or record.rescue_blocked
    view = record.view
    return (
        CRITICAL if severe else WARNING,
        view.latch,
        view.kind,
        view.calls,
        record.rescue_blocked,
        load if full else None,
        budget if full else None,
        view.lapses,
    )


def _unjustified(state: ChatState, t: Thresholds, at: int) -> Verdict:
    return _verdict(state, t, _pick(state, True)) if state.latches.open else None


def _justified(state: ChatState, t: Thresholds, at: int) -> Verdict:
    return _verdict(state, t, _pick(state, False)) if state.latches.open else None


def _say_unjustified(facts: Facts) -> str:
    _, kind, calls, blocked, load, budget, _ = facts
    made = "" if calls is None else f", {plural(int_of(calls), 'summarizer call')} were made"
    if calls == 1:
        made = ", 1 summarizer call was made"
    text = f"a latch without good reason keeps compaction off ({KINDS[text_of(kind)]}{made})"
    return text + _effect(blocked, load, budget) + "."


def _say_justified(facts: Facts) -> str:
    _, kind, calls, blocked, load, budget, lapses = facts
    after = f" after {plural(int_of(calls), 'call')}" if kind == "summarizer" and calls else ""
    text = f"a latch keeps compaction off: {KINDS[text_of(kind)]}{after}"
    text += _effect(blocked, load, budget)
    return text + f"; it lapses {lapses}." if lapses else text + "."


def _effect(blocked: object, load: object, budget: object) -> str:
    if blocked:
        return "; it stopped the rescue after a context overflow"
    if isinstance(load, int) and isinstance(budget, int):
        return f"; the load of {number(load)} is at or above the budget of {number(budget)}"
    return ""


def _latch_advice(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    record = state.latches.open.get(text_of(facts[0]))
    return record.view.recommended if record else ()


def _latch_against(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    record = state.latches.open.get(text_of(facts[0]))
    return record.view.discouraged if record else ()


_SEVERITY = (
    "critical when the load is at or above the budget, when every turn fails, or when it stopped "
    "a rescue after an overflow; else warning"
)

DEFINITIONS = (
    Definition(
        code="latched_unjustified",
        state=State.BLOCKED,
        mild_state=State.WATCH,
        title="Blocked by a latch without good reason",
        severity=_SEVERITY,
        check=_unjustified,
        sentence=_say_unjustified,
        recommended=_latch_advice,
        discouraged=_latch_against,
        doc="Compaction is off for a reason that does not hold: no summarizer call failed, its "
        "cause is healed, or its holder is dead. Clearing the latch is right.",
        actions=("clear_latch", "repair_pairs"),
    ),
    Definition(
        code="latched",
        state=State.BLOCKED,
        mild_state=State.WATCH,
        title="Blocked by a latch",
        severity=_SEVERITY,
        check=_justified,
        sentence=_say_justified,
        recommended=_latch_advice,
        discouraged=_latch_against,
        doc="Compaction is off and the reason holds, or is not known. Clearing the latch would "
        "repeat what failed; a fallback compaction calls no model.",
        actions=("compact_fallback", "manual"),
    ),
)
