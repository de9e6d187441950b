"""Remarks: worth a look, no trouble yet."""

from __future__ import annotations

from ctxhealth.core.advice import manual
from ctxhealth.core.findings.definition import (
    INFO,
    WARNING,
    Definition,
    Facts,
    Verdict,
    fallback_advice,
    int_of,
    text_of,
)
from ctxhealth.core.meter import trigger_measure
from ctxhealth.core.model import Advice, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import clip, number, percent


def _near(state: ChatState, t: Thresholds, at: int) -> Verdict:
    limits = state.limits
    trigger = limits.trigger
    if not trigger:
        return None
    measure = trigger_measure(state)
    if measure is None or measure < t.near_trigger_share * trigger:
        return None
    return (INFO, measure, trigger, limits.trigger_scope, limits.trigger_source)


def _say_near(facts: Facts) -> str:
    measure, trigger, scope, source = facts
    value, line = int_of(measure), int_of(trigger)
    kind = "" if source == "declared" else f"{source} "
    where = f"at {percent(value / line)} of" if value <= line else "above"
    return (
        f"the {text_of(scope)} of {number(value)} is {where} the {kind}trigger of {number(line)}."
    )


def _jump(state: ChatState, t: Thresholds, at: int) -> Verdict:
    meter = state.meter
    if meter.step is None:
        return None
    return (WARNING, meter.step, state.limits.window, meter.jump_item)


def _say_jump(facts: Facts) -> str:
    step, window, item = facts
    share = f", {percent(int_of(step) / int_of(window))} of the window" if window else ""
    who = f"; the largest new item is {clip(text_of(item), 80)}" if item else ""
    return f"the load rose by {number(int_of(step))} in one step{share}{who}."


def _huge(state: ChatState, t: Thresholds, at: int) -> Verdict:
    budget, history = state.limits.budget, state.history
    if not budget or not history.heavy:
        return None
    line = t.huge_item_share * budget
    if history.heaviest <= line:
        return None
    for heavy in history.heavy:
        if heavy.tokens > line and heavy.in_context:
            return (INFO, heavy.name or heavy.id, heavy.kind, heavy.tokens, budget)
    return None


def _say_huge(facts: Facts) -> str:
    name, kind, tokens, budget = facts
    share = percent(int_of(tokens) / int_of(budget))
    what = text_of(kind).replace("_", " ")
    return (
        f"one {what} ({clip(text_of(name), 80)}) has {number(int_of(tokens))} tokens, {share} of "
        "the budget."
    )


def _ineffective(state: ChatState, t: Thresholds, at: int) -> Verdict:
    if not state.compactions.ineffective or not state.compactions.recent:
        return None
    last = state.compactions.recent[-1]
    return (INFO, last.freed, last.before)


def _lossy(state: ChatState, t: Thresholds, at: int) -> Verdict:
    return (INFO,) if state.compactions.lossy is not None else None


def _pending(state: ChatState, t: Thresholds, at: int) -> Verdict:
    meter = state.meter
    return (INFO, meter.estimate) if meter.pending else None


def _say_pending(facts: Facts) -> str:
    text = "a compaction changed the context and no request has been counted since"
    return f"{text}; about {number(int_of(facts[0]))}." if facts[0] is not None else f"{text}."


def _refused(state: ChatState, t: Thresholds, at: int) -> Verdict:
    requests = state.requests
    if requests.guard_count is None and state.compactions.refused is None:
        return None
    return (INFO, requests.guard_count, requests.guard_limit, state.compactions.refused)


def _say_refused(facts: Facts) -> str:
    count, limit, code = facts
    if count is None:
        return f"the agent refused visibly: {clip(text_of(code), 160)}."
    if limit is None:
        return (
            f"the agent refused to send {number(int_of(count))} tokens ({clip(text_of(code), 60)})."
        )
    over = int_of(count) - int_of(limit)
    return (
        f"the agent refused to send {number(int_of(count))} tokens, {number(over)} above its limit "
        f"of {number(int_of(limit))} ({clip(text_of(code), 60)}): visible, as it should be."
    )


def _refused_advice(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (fallback_advice(state),)


def _retries(state: ChatState, t: Thresholds, at: int) -> Verdict:
    retries = state.requests.retries
    return (WARNING, retries) if retries >= t.retries_growing else None


def _retry_advice(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (manual("Keep error texts out of the history; then continue the turn."),)


DEFINITIONS = (
    Definition(
        code="retries_grow_prompt",
        state=State.WATCH,
        title="Retries make the prompt larger",
        severity="warning",
        check=_retries,
        sentence=lambda facts: (
            f"{number(int_of(facts[0]))} retries of a failed request, each larger than the last."
        ),
        recommended=_retry_advice,
        doc="The agent adds each failure to the history and tries again.",
        actions=("manual",),
    ),
    Definition(
        code="jump",
        state=State.WATCH,
        title="The load jumped",
        severity="warning",
        check=_jump,
        sentence=_say_jump,
        doc="More than 25% of the window in one step. Closes at the next answered turn.",
    ),
    Definition(
        code="near_trigger",
        state=State.WATCH,
        title="Near the trigger",
        severity="info",
        check=_near,
        sentence=_say_near,
        doc="Within 10% of where the agent starts compacting, or above a trigger that is only "
        "learned or assumed. A compaction is due; nothing is wrong.",
    ),
    Definition(
        code="huge_item",
        state=State.WATCH,
        title="One huge item",
        severity="info",
        check=_huge,
        sentence=_say_huge,
        doc="One item in the context is larger than 20% of the budget.",
    ),
    Definition(
        code="ineffective",
        state=State.WATCH,
        title="A compaction freed little",
        severity="info",
        check=_ineffective,
        sentence=lambda facts: (
            f"the last compaction freed only {number(int_of(facts[0]))} of "
            f"{number(int_of(facts[1]))} tokens."
        ),
        doc="Less than 5% was freed.",
    ),
    Definition(
        code="lossy",
        state=State.WATCH,
        title="Compacted without a summary",
        severity="info",
        check=_lossy,
        sentence=lambda facts: (
            "the last compaction cut content by rule; no model wrote a summary of it."
        ),
        doc="A fallback stands in for a summary. Closes at the next answered turn.",
    ),
    Definition(
        code="load_pending",
        state=State.WATCH,
        title="Load not yet counted",
        severity="info",
        check=_pending,
        sentence=_say_pending,
        doc="Readings of requests built before the compaction say nothing about the context "
        "after it.",
    ),
    Definition(
        code="refused",
        state=State.WATCH,
        title="The agent refused visibly",
        severity="info",
        check=_refused,
        sentence=_say_refused,
        recommended=_refused_advice,
        doc="A refusal with its numbers before any call is correct behaviour.",
        actions=("compact_fallback",),
    ),
)
