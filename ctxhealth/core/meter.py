"""The load: the newest reading, what was added since, and what follows from both (domain 2)."""

from __future__ import annotations

from ctxhealth.core.limits import fixed_part
from ctxhealth.core.state import ChatState


def load_now(state: ChatState) -> int | None:
    """The prompt of the last request, or None while unknown, pending or unreliable."""
    meter = state.meter
    return None if meter.pending or meter.doubt is not None else meter.value


def projection(state: ChatState) -> int | None:
    """The next prompt: the last reading plus what was added since, by the items' own counts."""
    meter = state.meter
    if meter.doubt is not None:
        return None
    base = meter.estimate if meter.pending else meter.value
    return None if base is None else base + meter.added - meter.added_before


def history_now(state: ChatState) -> int | None:
    """The history's size as the agent counts it."""
    return state.history.value


def trigger_measure(state: ChatState) -> int | None:
    """What the trigger compares: the history for a history trigger, else the load."""
    if state.limits.trigger_scope == "history":
        return state.history.value
    return load_now(state)


def corrected(state: ChatState, count: int) -> int:
    """A local count brought to the provider's scale, where the agent counts too little."""
    calibration = state.meter.calibration
    if calibration is None or not 0 < calibration < 1:
        return count
    return round(count / calibration)


def on_provider_scale(state: ChatState, local: int) -> int:
    """A local count as the provider would count it, by the pairs seen so far."""
    calibration = state.meter.calibration
    return local if not calibration else round(local / calibration)


def forecast(state: ChatState, least: int) -> int | None:
    """Requests left to the trigger by the median growth; None when it cannot be said."""
    limits = state.limits
    measure, growth = trigger_measure(state), state.meter.growth
    if measure is None or limits.trigger is None or len(growth) < least:
        return None
    step = median(growth)
    left = limits.trigger - measure
    return int(left // step) if step > 0 and left >= 0 else None


def estimate_after(state: ChatState, after: int | None, scope: str) -> int | None:
    """The agent's after-count as an estimate of the next prompt."""
    if after is None:
        return None
    if scope == "prompt":
        return after
    fixed = fixed_part(state)
    return None if fixed is None else fixed + after + (state.history.extras or 0)


def median(values: list[int]) -> int:
    """The lower median of a non-empty list."""
    return sorted(values)[(len(values) - 1) // 2]


def median_ratio(values: list[float]) -> float:
    """The median of a non-empty list of ratios."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
