"""How a reading enters the state, and what is concluded from it (domain 2 and 3)."""

from __future__ import annotations

from ctxhealth.core.folding.context import Context, push
from ctxhealth.core.limits import settle_limits, settle_trigger
from ctxhealth.core.meter import median_ratio
from ctxhealth.core.model import ReadingPoint, Source
from ctxhealth.core.parts import CALIBRATION_PAIRS, GROWTH_STEPS, TREND_POINTS, OpenRequest
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import number


def provider_reading(
    state: ChatState, prompt: int, name: str, sent: OpenRequest | None, context: Context
) -> None:
    """An accepted request with the provider's own count."""
    meter, limits = state.meter, state.limits
    added = meter.added if sent is None else sent.added
    doubt = None
    if limits.window is not None and prompt > limits.window:
        doubt = _above_window(state, prompt, added, context)
    if doubt is None:
        _learn(state, prompt, added, context)
    if sent is None or not sent.delta:
        _watch_truncation(state, prompt, added, sent)
    _set(state, prompt, "provider", name, added, doubt, context)
    meter.mismatch = False
    if sent is not None and sent.local is not None and not sent.delta and doubt is None:
        calibrate(state, sent.local, prompt, context.rules.thresholds.crossing)


def unreliable_reading(
    state: ChatState, value: int, name: str, doubt: str, context: Context
) -> None:
    """A number that cannot be right: shown as such, concluded nothing from."""
    _set(state, value, "provider", name, state.meter.added, doubt, context)


def own_count(
    state: ChatState, value: int, source: str, name: str | None, added: int, context: Context
) -> None:
    """A count of the agent's side or an estimate; checked against what is possible."""
    window = state.limits.window
    doubt = None
    if window is not None and value == window:
        doubt = f"a count of exactly the window, {number(window)}, looks clamped"
    elif window is not None and value > window and state.meter.good is not None:
        step = value - (state.meter.good + added - state.meter.added_before)
        if step > window:
            doubt = f"a step of {number(step)} tokens without an item"
    if doubt is None:
        _grow(state, value, source, added, context)
    _set(state, value, source, name, added, doubt, context)


def error_reading(state: ChatState, prompt: int, name: str, context: Context) -> None:
    """The prompt that an overflow error states."""
    _set(state, prompt, "error", name, state.meter.added, None, context)


def record_point(state: ChatState, context: Context) -> None:
    """One point of the load series, as of now."""
    meter, limits = state.meter, state.limits
    context.changes.readings.append(
        ReadingPoint(
            chat_seq=context.seq,
            at=context.at,
            load=meter.estimate if meter.pending else meter.value,
            source=Source.PENDING if meter.pending else Source(meter.source),
            window=limits.window,
            budget=limits.budget,
            trigger=limits.on_strip,
            history=state.history.value,
            local=meter.local,
        )
    )


def _set(
    state: ChatState,
    value: int,
    source: str,
    name: str | None,
    added: int,
    doubt: str | None,
    context: Context,
) -> None:
    meter = state.meter
    meter.value, meter.source = value, source
    meter.at, meter.request, meter.seq = context.at, name, context.seq
    meter.doubt = doubt
    meter.pending, meter.estimate = False, None
    if doubt is None:
        meter.added_before = added
        meter.good, meter.good_source = value, source
    meter.trend.append(None if doubt else value)
    if len(meter.trend) > TREND_POINTS:
        del meter.trend[0]
    record_point(state, context)


def _learn(state: ChatState, prompt: int, added: int, context: Context) -> None:
    limits = state.limits
    if limits.cap is not None and limits.window is not None:
        budget = limits.budget
        if budget is not None and prompt > budget:
            # A request above the budget was answered: the provider does not reserve the cap.
            limits.cap_refuted, limits.cap = limits.cap, None
            settle_limits(state, context.rules)
    _grow(state, prompt, "provider", added, context)


def _grow(state: ChatState, value: int, source: str, added: int, context: Context) -> None:
    """Growth between two readings without a compaction between; jumps name their item."""
    meter, window = state.meter, state.limits.window
    if meter.good is not None and meter.good_source == source and not meter.pending:
        step = value - meter.good
        push(meter.growth, step, GROWTH_STEPS)
        if window and step > context.rules.thresholds.jump_share * window:
            meter.step, meter.jump_item = step, state.history.biggest_new
        _watch_counter(state, step, added, value)
    state.history.biggest_new, state.history.biggest_new_tokens = None, 0


def _watch_counter(state: ChatState, step: int, added: int, value: int) -> None:
    """Equal steps as large as the first reading, which the items do not explain: cumulative."""
    meter = state.meter
    if meter.previous is None:
        meter.previous = meter.good
    first = meter.previous or 0
    explained = added - meter.added_before
    alike = first > 0 and abs(step - first) <= 0.05 * first and explained < step / 2
    meter.steps_alike = meter.steps_alike + 1 if alike else 0


def _above_window(state: ChatState, prompt: int, added: int, context: Context) -> str | None:
    """Accepted above the window: either the window is wrong, or the meter is."""
    meter, limits = state.meter, state.limits
    larger = sorted(candidate.value for candidate in limits.candidates if candidate.value >= prompt)
    if meter.good is None or meter.good_source != "provider" or meter.pending:
        proves = bool(larger)
    else:
        expected = meter.good + max(0, added - meter.added_before) + (meter.completion or 0)
        share = context.rules.thresholds.evidence_share
        proves = abs(prompt - expected) <= share * prompt
    if not proves or meter.steps_alike >= context.rules.thresholds.cumulative_steps:
        return f"{number(prompt)} accepted above a window of {number(limits.window)}"
    limits.evidence = larger[0] if larger else prompt
    limits.evidence_at_least = not larger
    limits.evidence_detail = f"a request of {number(prompt)} tokens was accepted"
    settle_limits(state, context.rules)
    return None


def calibrate(state: ChatState, local: int, prompt: int, crossing: float) -> None:
    """One more pair of the agent's count and the provider's, of a full request."""
    meter, budget = state.meter, state.limits.budget
    meter.pairs.append(local / prompt)
    if len(meter.pairs) > CALIBRATION_PAIRS:
        del meter.pairs[0]
    meter.calibration = median_ratio(meter.pairs)
    apart = local < crossing * prompt
    meter.crossed = budget is not None and apart and local <= budget < prompt


def _watch_truncation(state: ChatState, prompt: int, added: int, sent: OpenRequest | None) -> None:
    """A count that stands still while the history grows, or far below the bytes that were sent."""
    meter = state.meter
    if meter.good == prompt and meter.identical and added > meter.identical_added:
        meter.identical += 1
    else:
        meter.identical = 1
    meter.identical_added = added
    meter.truncated = False
    if sent is None or not sent.bytes:
        return
    expected = sent.bytes / 4
    if meter.bytes_ok and prompt < 0.6 * expected:
        meter.truncated = True
    elif abs(prompt - expected) <= 0.25 * prompt:
        meter.bytes_ok = True


def learn_trigger(state: ChatState, before: int, context: Context) -> None:
    """Where the agent itself started: the last 3 automatic compactions tell."""
    push(state.limits.learned, before, 3)
    settle_trigger(state, context.rules.thresholds)
