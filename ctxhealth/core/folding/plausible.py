"""Counts that cannot be right: above the window, clamped, frozen, summed up, cut short."""

from __future__ import annotations

from ctxhealth.core.folding.context import Context
from ctxhealth.core.limits import settle_limits
from ctxhealth.core.parts import Meter, OpenRequest
from ctxhealth.core.state import ChatState
from ctxhealth.core.usage import Counted
from ctxhealth.core.wording import number

# Of a request's bytes, as tokens: four to one, as most texts have.
BYTES_PER_TOKEN = 4
_ALIKE = 0.05
_STILL_ALIKE = 0.8
_FROZEN_REPLIES = 3
_KIBI = 1024


def above_window(state: ChatState, counted: Counted, added: int, context: Context) -> str | None:
    """Accepted above the window: either the window is wrong, or the meter is (then: why)."""
    meter, limits, prompt = state.meter, state.limits, counted.prompt or 0
    if limits.window is None or prompt <= limits.window:
        return None
    if counted.without_cache is not None and counted.without_cache <= limits.window:
        return (
            f"{number(prompt)} accepted above a window of {number(limits.window)}, its input "
            "seems to hold the cached tokens already"
        )
    larger = sorted(candidate.value for candidate in limits.candidates if candidate.value >= prompt)
    summed = meter.steps_alike >= context.rules.thresholds.cumulative_steps
    if summed or not _is_explained(state, prompt, added, bool(larger), context):
        return f"{number(prompt)} accepted above a window of {number(limits.window)}"
    limits.evidence = larger[0] if larger else prompt
    limits.evidence_at_least = not larger
    limits.evidence_detail = f"a request of {number(prompt)} tokens was accepted"
    settle_limits(state, context.rules)
    return None


def _is_explained(
    state: ChatState, prompt: int, added: int, larger: bool, context: Context
) -> bool:
    """By the load before and what was added since; a first request by a larger candidate."""
    meter = state.meter
    if meter.good is None or meter.good_source != "provider" or meter.pending:
        return larger
    expected = meter.good + max(0, added - meter.added_before) + (meter.completion or 0)
    return abs(prompt - expected) <= context.rules.thresholds.evidence_share * prompt


def own_doubt(state: ChatState, value: int, source: str, added: int) -> str | None:
    """Why a count of the agent's side cannot be right, or None."""
    meter, window = state.meter, state.limits.window
    if window is not None and value == window:
        return f"a count of exactly the window, {number(window)}, looks clamped"
    if window is not None and value > window and meter.good is not None:
        step = value - (meter.good + added - meter.added_before)
        if step > window:
            return f"a step of {number(step)} tokens without an item"
    if meter.pending and value == meter.value and value != meter.estimate:
        return "it is the count from before the compaction"
    if source == "agent" and _is_frozen(state, value, added):
        return f"the same count over {number(meter.frozen)} replies while the history grew"
    return None


def _is_frozen(state: ChatState, value: int, added: int) -> bool:
    """The agent's gauge shows an old count again after further replies and further items."""
    meter, answered = state.meter, state.requests.answered
    if meter.source != "agent" or meter.value != value:
        meter.frozen, meter.frozen_answered, meter.frozen_added = 1, answered, added
        meter.frozen_from = added
    elif answered > meter.frozen_answered and added > meter.frozen_added:
        meter.frozen += 1
        meter.frozen_answered, meter.frozen_added = answered, added
    return meter.frozen > _FROZEN_REPLIES


def watch_counter(meter: Meter, step: int, added: int, value: int, steps: int) -> None:
    """Steps as large as the first reading, which the items do not explain: a running total.

    It is one until it falls: the single requests behind it may grow slowly.
    """
    if meter.previous is None:
        meter.previous = meter.good
    first = meter.previous or 0
    if first <= 0 or added - meter.added_before >= step / 2:
        meter.steps_alike = 0
        return
    if meter.steps_alike >= steps:
        alike = step >= _STILL_ALIKE * first
    else:
        whole = first * (meter.steps_alike + 2)
        alike = abs(step - first) <= _ALIKE * first and abs(value - whole) <= _ALIKE * whole
    meter.steps_alike = meter.steps_alike + 1 if alike else 0


def _halved_from(state: ChatState, prompt: int, sent: OpenRequest | None) -> int | None:
    """Of how much a count of exactly half the window and 2 was left, by the newest known count.

    That is what a server leaves that keeps half of too long a prompt.
    """
    meter, window = state.meter, state.limits.window
    if window is None or prompt != window // 2 + 2 or meter.pending:
        return None
    full = sent.local if sent is not None and not sent.delta else None
    whole = max(full or 0, meter.good or 0)
    return whole if whole > prompt / _STILL_ALIKE else None


def watch_truncation(
    state: ChatState, prompt: int, added: int, sent: OpenRequest | None, context: Context
) -> None:
    """A count that stands still while the history grows, or far below the bytes that were sent."""
    meter, t = state.meter, context.rules.thresholds
    items = state.history.items
    # Items of unknown size make the history grow too; then the count itself must be a window's.
    grown = added > meter.identical_added or (items > meter.identical_items and prompt % _KIBI == 0)
    same = meter.good == prompt and meter.good_source == "provider"
    if same and meter.identical and grown:
        meter.identical += 1
    else:
        meter.identical, meter.identical_from = 1, added
    meter.identical_added, meter.identical_items = added, items
    meter.expected = _halved_from(state, prompt, sent)
    meter.truncated = meter.expected is not None
    if sent is None or not sent.bytes:
        return
    expected = sent.bytes // BYTES_PER_TOKEN
    if meter.bytes_ok and prompt < t.truncated_share * expected:
        meter.truncated, meter.expected = True, expected
    elif abs(prompt - expected) <= t.evidence_share * prompt:
        meter.bytes_ok = True
