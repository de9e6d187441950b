"""Window, reserve, budget and trigger: who says so, and which value counts (domain 3)."""

from __future__ import annotations

from ctxhealth.core.model import Candidate, WindowSource
from ctxhealth.core.parts import Facts, Limits
from ctxhealth.core.rules import Rules, Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.windows import ModelWindow

_ORDER = (
    WindowSource.OPERATOR,
    WindowSource.EVIDENCE,
    WindowSource.AGENT,
    WindowSource.TABLE,
)


def default_reserve(window: int, thresholds: Thresholds) -> int:
    """The assumed reserve: 5% of the window, at least 1 and at most 4,096 tokens."""
    share = int(thresholds.reserve_share * window)
    return min(thresholds.reserve_tokens, max(1, share))


def budget_of(window: int, reserve: int, max_input: int | None) -> int:
    """What a prompt may use; 0 where the reserve takes the whole window, never negative."""
    usable = window - reserve
    if max_input is not None and max_input < usable:
        usable = max_input
    return max(0, usable)


def settle_limits(state: ChatState, rules: Rules) -> None:
    """Compute everything effective anew. Called when a fact, the model or evidence changed."""
    known = _look_up(state.facts, rules)
    state.limits.candidates = _candidates(state, rules, known)
    _settle_window(state.limits)
    _settle_reserve(state.limits, state.facts, known, rules.thresholds)
    settle_trigger(state, rules.thresholds)


def settle_trigger(state: ChatState, thresholds: Thresholds) -> None:
    """The trigger: declared, else learned from the agent's own compactions, else assumed."""
    facts, limits = state.facts, state.limits
    declared = _declared_trigger(facts, limits.window)
    if declared is not None:
        limits.trigger, limits.trigger_source = declared, "declared"
        limits.trigger_inclusive, limits.trigger_scope = _declared_shape(facts)
    elif limits.learned:
        limits.trigger, limits.trigger_source = min(limits.learned), "learned"
        limits.trigger_inclusive, limits.trigger_scope = True, "prompt"
    elif limits.window is not None and limits.window_source != "unknown":
        limits.trigger = int(thresholds.trigger_share * limits.window)
        limits.trigger_source = "assumed"
        limits.trigger_inclusive, limits.trigger_scope = False, "prompt"
    else:
        limits.trigger, limits.trigger_source = None, "unknown"
        limits.trigger_inclusive, limits.trigger_scope = False, "prompt"
    limits.on_strip = trigger_on_strip(state)


def trigger_on_strip(state: ChatState) -> int | None:
    """Where the trigger stands in prompt tokens: a history trigger begins after the fixed part."""
    limits = state.limits
    if limits.trigger is None or limits.trigger_scope == "prompt":
        return limits.trigger
    fixed = fixed_part(state)
    return None if fixed is None else fixed + limits.trigger


def fixed_part(state: ChatState) -> int | None:
    """System prompt and tool schemas; None while neither is known."""
    history = state.history
    if history.system is None and history.tools is None:
        return None
    return (history.system or 0) + (history.tools or 0)


def crosses(value: int, trigger: int, inclusive: bool) -> bool:
    """True when ``value`` makes the agent compact: at the trigger only for a ``>=`` agent."""
    return value >= trigger if inclusive else value > trigger


def overdue_line(state: ChatState, thresholds: Thresholds, room: int) -> int | None:
    """Above this a compaction is overdue where the agent declares no trigger.

    90% of the budget, but never more than ``room`` tokens below it: agents with a window of a
    million start at a fixed distance from its end. An output cap that stands on the requests is
    no reserve here: agents go up to the edge of it.
    """
    limits, reserve = state.limits, state.facts.reserve
    if limits.window is None or limits.budget is None:
        return None
    if reserve is None:
        reserve = default_reserve(limits.window, thresholds)
    budget = budget_of(limits.window, reserve, limits.max_input)
    return max(int(thresholds.overdue_share * budget), budget - room)


def forget_model(state: ChatState) -> None:
    """Another model: nothing learned about the old one holds."""
    limits, meter = state.limits, state.meter
    limits.evidence, limits.evidence_at_least, limits.evidence_detail = None, False, ""
    limits.learned = []
    limits.cap = limits.cap_refuted = limits.proven = None
    meter.pairs, meter.calibration, meter.crossed = [], None, False
    meter.growth, meter.previous = [], None


def _look_up(facts: Facts, rules: Rules) -> ModelWindow | None:
    return rules.lookup(facts.model, facts.provider) if facts.model else None


def _candidates(state: ChatState, rules: Rules, known: ModelWindow | None) -> list[Candidate]:
    facts, limits = state.facts, state.limits
    found: list[Candidate] = []
    override = rules.override(facts.model, facts.provider)
    if override is not None:
        found.append(
            Candidate(
                source=WindowSource.OPERATOR,
                value=override.window,
                max_input=override.max_input,
                detail=override.by,
            )
        )
    if limits.evidence is not None:
        found.append(
            Candidate(
                source=WindowSource.EVIDENCE, value=limits.evidence, detail=limits.evidence_detail
            )
        )
    if facts.window:
        found.append(
            Candidate(
                source=WindowSource.AGENT,
                value=facts.window,
                max_input=facts.max_input,
                detail="declared by the agent",
            )
        )
    if known is not None:
        found.append(
            Candidate(
                source=WindowSource.TABLE,
                value=known.window,
                max_input=known.max_input,
                detail=known.key,
            )
        )
    return found


def _settle_window(limits: Limits) -> None:
    for source in _ORDER:
        for candidate in limits.candidates:
            if candidate.source is source:
                limits.window, limits.window_source = candidate.value, source.value
                limits.at_least = source is WindowSource.EVIDENCE and limits.evidence_at_least
                limits.max_input = _max_input(limits, candidate)
                return
    limits.window, limits.window_source, limits.at_least = None, "unknown", False
    limits.max_input = None


def _max_input(limits: Limits, chosen: Candidate) -> int | None:
    """The chosen source's own maximum, else that of a source that names the same window."""
    if chosen.max_input is not None:
        return chosen.max_input
    for candidate in limits.candidates:
        if candidate.max_input is not None and candidate.value == chosen.value:
            return candidate.max_input
    return None


def _settle_reserve(
    limits: Limits, facts: Facts, known: ModelWindow | None, thresholds: Thresholds
) -> None:
    declared = [value for value in (facts.reserve, limits.cap) if value is not None]
    limits.reserve_assumed = not declared
    if declared:
        limits.reserve = max(declared)
    elif limits.window is not None:
        limits.reserve = default_reserve(limits.window, thresholds)
    else:
        limits.reserve = None
    if limits.window is None or limits.reserve is None:
        limits.budget = None
        return
    max_input = facts.max_input
    if max_input is None or limits.window_source == WindowSource.OPERATOR:
        max_input = limits.max_input
    limits.budget = budget_of(limits.window, limits.reserve, max_input)


def _declared_trigger(facts: Facts, window: int | None) -> int | None:
    """None also for 0: settings say so for off, and no history is above it on purpose."""
    if facts.trigger_declared:
        if facts.trigger_tokens is not None:
            return facts.trigger_tokens or None
        if facts.trigger_ratio is not None:
            return None if window is None else int(facts.trigger_ratio * window) or None
    return facts.history_limit or None


def _declared_shape(facts: Facts) -> tuple[bool, str]:
    if facts.trigger_declared:
        return facts.trigger_inclusive, facts.trigger_scope
    return False, "history"
