"""Above the trigger while nothing is tried."""

from __future__ import annotations

from ctxhealth.core.advice import advise, manual
from ctxhealth.core.findings.definition import (
    WARNING,
    Definition,
    Facts,
    Verdict,
    fallback_advice,
    int_of,
    text_of,
)
from ctxhealth.core.latching import had_its_chance, is_pressed
from ctxhealth.core.limits import overdue_line
from ctxhealth.core.meter import load_now, trigger_measure
from ctxhealth.core.model import Advice, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import number, plural


def _over_trigger(state: ChatState, t: Thresholds, at: int) -> Verdict:
    limits, above = state.limits, state.requests.above
    if above < 2 or limits.trigger_source != "declared" or state.compactions.running:
        return None
    if not is_pressed(state) or not had_its_chance(state):
        return None
    return (WARNING, trigger_measure(state), limits.trigger, limits.trigger_scope, above)


def _say_over_trigger(facts: Facts) -> str:
    measure, trigger, scope, above = facts
    return (
        f"the {text_of(scope)} of {number(int_of(measure))} is above the trigger of "
        f"{number(int_of(trigger))} and {plural(int_of(above) - 1, 'request')} followed without "
        "an attempt."
    )


def _overdue(state: ChatState, t: Thresholds, at: int) -> Verdict:
    limits, requests = state.limits, state.requests
    if state.compactions.running:
        return None
    declared = limits.trigger_source == "declared" and is_pressed(state)
    if declared and requests.above >= t.overdue_requests and had_its_chance(state):
        measure = trigger_measure(state)
        return (WARNING, measure, limits.trigger, limits.trigger_scope, requests.above, True)
    if requests.tight < t.overdue_requests:
        return None
    load, line = load_now(state), overdue_line(state, t, t.overdue_close)
    if load is None or line is None or load <= line:
        return None
    return (WARNING, load, limits.budget, "prompt", requests.tight, False)


def _say_overdue(facts: Facts) -> str:
    measure, line, scope, above, declared = facts
    name = "trigger" if declared else "budget"
    where = "above" if declared else "close to"
    return (
        f"the {text_of(scope)} of {number(int_of(measure))} is {where} the {name} of "
        f"{number(int_of(line))} and no compaction was tried for "
        f"{plural(int_of(above), 'request')}; the reason is not known."
    )


def _unreachable(state: ChatState, t: Thresholds, at: int) -> Verdict:
    limits = state.limits
    if limits.proven is None or limits.trigger_source != "declared" or limits.on_strip is None:
        return None
    if limits.on_strip <= limits.proven:
        return None
    return (WARNING, limits.on_strip, limits.proven)


def _try_now(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    summarize = advise(state, "compact_summarize", "Let the agent compact now.")
    # What holds the agent's own compaction back would send this one away too.
    held = bool(state.latches.open)
    return (fallback_advice(state),) if held else (summarize, fallback_advice(state))


def _lower(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (manual("Lower the trigger below the limit that the provider stated."),)


DEFINITIONS = (
    Definition(
        code="over_trigger",
        state=State.SATURATED,
        title="Above the trigger",
        severity="warning",
        check=_over_trigger,
        sentence=_say_over_trigger,
        recommended=_try_now,
        doc="Above a declared trigger, and one further request went out without an attempt, in the "
        "next turn where the agent compacts between turns only. A learned or assumed trigger is "
        "never a reason.",
        actions=("compact_summarize", "compact_fallback"),
    ),
    Definition(
        code="overdue",
        state=State.SATURATED,
        title="Compaction is overdue",
        severity="warning",
        check=_overdue,
        sentence=_say_overdue,
        recommended=_try_now,
        doc="3 requests without an attempt: above the declared trigger where the agent had the "
        "beginning of a turn to compact at, else above 90% of the budget and within 25,000 tokens "
        "of it, the last of them within 10,000: real agents start up to 11,000 below.",
        actions=("compact_summarize", "compact_fallback"),
    ),
    Definition(
        code="trigger_unreachable",
        state=State.SATURATED,
        title="The trigger cannot be reached",
        severity="warning",
        check=_unreachable,
        sentence=lambda facts: (
            f"the trigger of {number(int_of(facts[0]))} lies above the limit of "
            f"{number(int_of(facts[1]))} that the provider keeps to: an overflow comes first."
        ),
        recommended=_lower,
        doc="An overflow error stated a limit below the declared trigger, or a prompt below it was "
        "refused as too large.",
        actions=("manual",),
    ),
)
