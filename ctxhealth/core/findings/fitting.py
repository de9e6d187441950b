"""What no compaction can make fit."""

from __future__ import annotations

from ctxhealth.core.advice import against, manual
from ctxhealth.core.findings.definition import (
    CRITICAL,
    WARNING,
    Definition,
    Facts,
    Verdict,
    fallback_advice,
    int_of,
)
from ctxhealth.core.limits import fixed_part
from ctxhealth.core.model import Advice, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import number, percent


def floor_of(state: ChatState) -> int | None:
    """Fixed part plus protected tail; the fixed part alone is its lower bound."""
    fixed = fixed_part(state)
    if fixed is None:
        return None
    return fixed + (state.history.protected or 0)


def _floor(state: ChatState, t: Thresholds, at: int) -> Verdict:
    floor, budget = floor_of(state), state.limits.budget
    if floor is None or budget is None or floor <= budget:
        return None
    if _reserve(state, t, at) is not None:
        return None
    return (CRITICAL, floor, budget, fixed_part(state), state.history.protected)


def _say_floor(facts: Facts) -> str:
    floor, budget, fixed, protected = facts
    parts = f"system and tools {number(int_of(fixed))}"
    if protected is not None:
        parts += f", protected tail {number(int_of(protected))}"
    return (
        f"the floor of {number(int_of(floor))} ({parts}) is above the budget of "
        f"{number(int_of(budget))}: compaction cannot help."
    )


def _reserve(state: ChatState, t: Thresholds, at: int) -> Verdict:
    reserve, window = state.limits.reserve, state.limits.window
    if reserve is None or not window or reserve < t.reserve_share_of_window * window:
        return None
    return (CRITICAL, reserve, window, state.limits.budget)


def _say_reserve(facts: Facts) -> str:
    reserve, window, budget = (int_of(fact) for fact in facts)
    return (
        f"the reserve of {number(reserve)} takes {percent(reserve / window)} of the window of "
        f"{number(window)}: {number(budget)} tokens are left for the prompt."
    )


def _too_small(state: ChatState, t: Thresholds, at: int) -> Verdict:
    window, wanted = state.facts.utility_window, state.compactions.summary_input
    if window is None or wanted is None or wanted <= window:
        return None
    return (WARNING, wanted, window, state.facts.utility_model)


def _say_too_small(facts: Facts) -> str:
    wanted, window, model = facts
    who = f"the summarizer {model}" if model else "the summarizer"
    return (
        f"{who} holds {number(int_of(window))} tokens and is to summarise {number(int_of(wanted))}."
    )


def _summary_reserve(state: ChatState, t: Thresholds, at: int) -> Verdict:
    window = state.facts.utility_window
    wanted, cap = state.compactions.summary_input, state.compactions.summary_output
    if window is None or wanted is None or cap is None or wanted > window:
        return None
    if wanted + cap <= window:
        return None
    return (WARNING, wanted, cap, window)


def _say_summary_reserve(facts: Facts) -> str:
    wanted, cap, window = (int_of(fact) for fact in facts)
    return (
        f"the summary request asks for {number(wanted)} + {number(cap)} output = "
        f"{number(wanted + cap)} tokens of a window of {number(window)}."
    )


def _limits_advice(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (manual("Use a larger window, a smaller output reserve, or fewer tools."),)


def _no_fallback(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (against("compact_fallback", "It cannot go below the floor."),)


def _summary_advice(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (fallback_advice(state), manual("Use a summarizer with a larger window."))


DEFINITIONS = (
    Definition(
        code="floor_exceeds_budget",
        state=State.CANNOT_FIT,
        title="Compaction cannot help",
        severity="critical",
        check=_floor,
        sentence=_say_floor,
        recommended=_limits_advice,
        discouraged=_no_fallback,
        doc="System prompt, tool schemas and the protected tail alone are larger than the budget.",
        actions=("manual",),
    ),
    Definition(
        code="reserve_exceeds_window",
        state=State.CANNOT_FIT,
        title="The reserve takes the window",
        severity="critical from 90% of the window",
        check=_reserve,
        sentence=_say_reserve,
        recommended=_limits_advice,
        doc="The output reserve, or the output cap declared on the request, leaves almost nothing "
        "for the prompt. The cap drops out once a request above that budget is answered.",
        actions=("manual",),
    ),
    Definition(
        code="summarizer_too_small",
        state=State.CANNOT_FIT,
        title="The summarizer is too small",
        severity="warning",
        check=_too_small,
        sentence=_say_too_small,
        recommended=_summary_advice,
        doc="The summarizer's window is smaller than what it is to summarise.",
        actions=("compact_fallback", "manual"),
    ),
    Definition(
        code="summary_reserve",
        state=State.CANNOT_FIT,
        title="The summary request leaves no room",
        severity="warning",
        check=_summary_reserve,
        sentence=_say_summary_reserve,
        recommended=_summary_advice,
        doc="Input and output cap of the summary request together exceed the summarizer's window.",
        actions=("compact_fallback", "manual"),
    ),
)
