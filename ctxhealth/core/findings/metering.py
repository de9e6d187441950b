"""Numbers that cannot be right, or do not agree."""

from __future__ import annotations

from ctxhealth.core.findings.definition import (
    INFO,
    WARNING,
    Definition,
    Facts,
    Verdict,
    int_of,
    only,
    text_of,
)
from ctxhealth.core.meter import corrected, estimate_after, load_now, median_ratio
from ctxhealth.core.model import State
from ctxhealth.core.parts import Fact
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import number

_INSTEAD = {
    "last": "; the last one that can be is {}",
    "after": "; after the compaction the agent counts {}",
    "input": "; counted once it is {}",
    "added": "; with what was added since it is about {}",
}


def _unreliable(state: ChatState, t: Thresholds, at: int) -> Verdict:
    meter = state.meter
    if meter.doubt is not None:
        value = meter.estimate if meter.pending else meter.value
        return (WARNING, value, meter.doubt, meter.instead, meter.instead_from)
    if meter.mismatch:
        return (WARNING, None, "before and after of a compaction count different things", None, "")
    return None


def _say_unreliable(facts: Facts) -> str:
    value, doubt, instead, source = facts
    if value is None:
        return f"the count cannot be compared: {text_of(doubt)}."
    text = f"the count of {number(int_of(value))} cannot be right: {text_of(doubt)}"
    if instead is not None:
        text += _INSTEAD[text_of(source)].format(number(int_of(instead)))
    return text + "."


def _undercount(state: ChatState, t: Thresholds, at: int) -> Verdict:
    meter = state.meter
    ratio = recent_ratio(state, t)
    enough = ratio is not None and ratio < t.undercount
    if not enough and not meter.crossed:
        return None
    local, calibration = meter.local, meter.calibration or 1.0
    real = None if local is None else corrected(state, local)
    severe = meter.crossed or _is_near(state, t)
    return (WARNING if severe else INFO, round(calibration, 2), local, real)


def recent_ratio(state: ChatState, t: Thresholds) -> float | None:
    """The ratio of the last pairs alone, so that a corrected count shows soon."""
    pairs = state.meter.pairs
    if len(pairs) < t.calibration_pairs:
        return None
    return median_ratio(pairs[-t.calibration_pairs :])


def _is_near(state: ChatState, t: Thresholds) -> bool:
    """Near where it matters: a wrong count far below every limit harms nobody yet."""
    limits, load = state.limits, load_now(state)
    lines = [line for line in (limits.on_strip, limits.budget) if line is not None]
    return load is None or not lines or load >= t.near_trigger_share * min(lines)


def _say_undercount(facts: Facts) -> str:
    ratio, local, real = facts
    text = f"the agent counts only {float(ratio or 0):.2f} of what the provider counts"
    if local is not None:
        text += f" ({number(int_of(local))} for about {number(int_of(real))})"
    return text + "; its own limits come too late."


def _overcount(state: ChatState, t: Thresholds, at: int) -> Verdict:
    ratio = recent_ratio(state, t)
    if ratio is None or ratio <= t.overcount:
        return None
    return (INFO, round(ratio, 2))


def _conflict(state: ChatState, t: Thresholds, at: int) -> Verdict:
    candidates = state.limits.candidates
    if len(candidates) < 2:
        return None
    values = [candidate.value for candidate in candidates]
    if not _differ(values, t) or not _disagree(state, t):
        return None
    facts: list[Fact] = []
    for candidate in candidates:
        facts += [candidate.source.value, candidate.value]
    return (WARNING, *facts)


def _disagree(state: ChatState, t: Thresholds) -> bool:
    """Two sources differ by more than 2%, and it is more than an agent's own lower setting.

    A window smaller than the model's is what agents set every day, and some declare what the
    prompt may use instead; as long as no evidence speaks against it, that is no dispute.
    """
    by_source = {c.source.value: c.value for c in state.limits.candidates}
    if "operator" in by_source:
        # The dispute is settled, unless what was seen speaks against that word.
        by_source = {
            name: by_source[name] for name in ("operator", "evidence") if name in by_source
        }
    agent, table = by_source.get("agent"), by_source.get("table")
    if agent is not None and table is not None and agent < table and "evidence" not in by_source:
        by_source.pop("table")
    return _differ(list(by_source.values()), t)


def _differ(values: list[int], t: Thresholds) -> bool:
    low, high = min(values), max(values)
    return high - low > t.window_conflict_share * high


def _say_conflict(facts: Facts) -> str:
    claims = [
        f"{text_of(facts[index])} {number(int_of(facts[index + 1]))}"
        for index in range(0, len(facts) - 1, 2)
    ]
    return f"the sources disagree about the window: {', '.join(claims)}."


def _cumulative(state: ChatState, t: Thresholds, at: int) -> Verdict:
    meter = state.meter
    if meter.steps_alike >= t.cumulative_steps:
        return (WARNING, "steps", meter.value, meter.previous, meter.growth[-1])
    if meter.no_fall >= 2:
        return (WARNING, "no_fall", meter.value, meter.no_fall, _after_last(state))
    return None


def _after_last(state: ChatState) -> int | None:
    """What the agent counts after its newest compaction, in prompt tokens."""
    for view in reversed(state.compactions.recent):
        if view.freed:
            return estimate_after(state, view.after, view.after_scope or view.scope)
    return None


def _say_cumulative(facts: Facts) -> str:
    form, value, other, real = facts
    if form == "steps":
        return (
            f"usage grows by about {number(int_of(other))} with every request: it is a running "
            f"total, not the load of {number(int_of(value))}; the last request alone is about "
            f"{number(int_of(real))}."
        )
    text = (
        f"usage did not fall after {number(int_of(other))} successful compactions: "
        f"{number(int_of(value))} looks like a running total"
    )
    return text + (f"; the agent counts {number(int_of(real))}." if real is not None else ".")


def _unknown(state: ChatState, t: Thresholds, at: int) -> Verdict:
    if state.limits.window is not None or state.meter.value is None:
        return None
    return (INFO, state.facts.model)


DEFINITIONS = (
    Definition(
        code="meter_unreliable",
        state=State.UNRELIABLE,
        title="The meter cannot be right",
        severity="warning",
        check=_unreliable,
        sentence=_say_unreliable,
        recommended=only("Nothing to do in the chat: wait for the next request's count."),
        doc="Zero parts with a total, a request accepted above the window that nothing explains "
        "(also where its cached tokens were added twice), a step above the window without an "
        "item, a count of exactly the window, an agent's count that stands still over 3 replies "
        "while the history grows, or before and after in different scopes. The count that can be "
        "right stands beside it. Findings of load that rest on it are held back.",
        actions=("manual",),
    ),
    Definition(
        code="undercount",
        state=State.UNRELIABLE,
        title="The agent counts too little",
        severity="warning near the trigger or the budget, else info",
        check=_undercount,
        sentence=_say_undercount,
        recommended=only("Correct the agent's token count by this ratio, or lower its limits."),
        doc="Local count divided by the provider's below 0.8 over at least 3 full requests, or "
        "one pair between which the budget lies.",
        actions=("manual",),
    ),
    Definition(
        code="window_conflict",
        state=State.UNRELIABLE,
        title="The window is disputed",
        severity="warning",
        check=_conflict,
        sentence=_say_conflict,
        recommended=only("State the right window in an override or in the agent's settings."),
        doc="Sources differ by more than 2%. All values are kept and shown. A window that the "
        "agent sets below the model's own is a setting, and an operator's word settles it unless "
        "evidence differs.",
        actions=("manual",),
    ),
    Definition(
        code="cumulative_usage",
        state=State.UNRELIABLE,
        title="Usage is a running total",
        severity="warning",
        check=_cumulative,
        sentence=_say_cumulative,
        recommended=only("Report the usage of each single request."),
        doc="2 increments as large as the first request that the items do not explain, or no fall "
        "after 2 successful compactions. The single request behind it is named beside.",
        actions=("manual",),
    ),
    Definition(
        code="overcount",
        state=State.WATCH,
        title="The agent counts too much",
        severity="info",
        check=_overcount,
        sentence=lambda facts: (
            f"the agent counts {float(facts[0] or 0):.2f} times what the provider counts; it "
            "compacts early."
        ),
        doc="Local count divided by the provider's above 1.25 over at least 3 full requests.",
    ),
    Definition(
        code="window_unknown",
        state=State.WATCH,
        title="Unknown window",
        severity="info",
        check=_unknown,
        sentence=lambda facts: (
            f"nobody says how large the window of {text_of(facts[0]) or 'this model'} is; there "
            "are tokens and no percentage."
        ),
        recommended=only("State the window in an override or in the agent's settings."),
        doc="No operator, evidence, agent or table names a window.",
        actions=("manual",),
    ),
)
