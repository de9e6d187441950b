"""How a reading enters the state, and what is concluded from it (domain 2 and 3)."""

from __future__ import annotations

from ctxhealth.core.folding.context import Context, push
from ctxhealth.core.folding.plausible import (
    above_window,
    own_doubt,
    watch_counter,
    watch_truncation,
)
from ctxhealth.core.limits import settle_limits, settle_trigger
from ctxhealth.core.meter import median_ratio
from ctxhealth.core.model import ReadingPoint, Source
from ctxhealth.core.parts import (
    CALIBRATION_PAIRS,
    GROWTH_STEPS,
    TREND_POINTS,
    Meter,
    OpenRequest,
)
from ctxhealth.core.state import ChatState
from ctxhealth.core.usage import Counted

# Befores further apart than this are not of one trigger.
HABIT = 2
_SOURCES = {source.value: source for source in Source}


def provider_reading(
    state: ChatState, counted: Counted, name: str, sent: OpenRequest | None, context: Context
) -> None:
    """An accepted request with the provider's own count, which is not None."""
    meter, prompt = state.meter, counted.prompt or 0
    added = meter.added if sent is None else sent.added
    doubt = above_window(state, counted, added, context)
    if doubt is None:
        _learn(state, prompt, added, context)
    if sent is None or not sent.delta:
        watch_truncation(state, prompt, added, sent, context)
    beside = None if counted.without_cache is None else (counted.without_cache, "input")
    _set(state, prompt, "provider", name, added, doubt, context, beside)
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
    meter = state.meter
    doubt = own_doubt(state, value, source, added)
    if doubt is None:
        _grow(state, value, source, added, context)
    frozen = source == "agent" and meter.frozen > 1
    beside = (value + added - meter.frozen_from, "added") if frozen else None
    _set(state, value, source, name, added, doubt, context, beside)


def doubt_estimate(state: ChatState, doubt: str) -> None:
    """The agent's own count after a compaction cannot be right; the one before it can."""
    meter = state.meter
    meter.doubt = doubt
    meter.instead, meter.instead_from = meter.good, "last"


def error_reading(state: ChatState, prompt: int, name: str, context: Context) -> None:
    """The prompt that an overflow error states."""
    meter = state.meter
    if meter.good is not None and meter.good_source == "provider" and not meter.pending:
        _note_jump(state, prompt - meter.good, context)
    _set(state, prompt, "error", name, state.meter.added, None, context)


def record_point(state: ChatState, context: Context) -> None:
    """One point of the load series, as of now."""
    meter, limits = state.meter, state.limits
    context.changes.readings.append(
        ReadingPoint(
            chat_seq=context.seq,
            at=context.at,
            load=meter.estimate if meter.pending else meter.value,
            source=Source.PENDING if meter.pending else _SOURCES[meter.source],
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
    beside: tuple[int, str] | None = None,
) -> None:
    meter = state.meter
    _stand_beside(meter, doubt, beside)
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


def _stand_beside(meter: Meter, doubt: str | None, beside: tuple[int, str] | None) -> None:
    """What to show beside a count in doubt: the newest one that can be right."""
    if doubt is None:
        meter.instead, meter.instead_from = None, ""
    elif beside is not None:
        meter.instead, meter.instead_from = beside
    elif meter.pending:
        meter.instead, meter.instead_from = meter.estimate, "after"
        # What was read before the compaction says nothing about the prompts after it.
        meter.good = None
    elif meter.doubt is None:
        meter.instead, meter.instead_from = meter.good, "last"


def _learn(state: ChatState, prompt: int, added: int, context: Context) -> None:
    limits = state.limits
    if limits.proven is not None and prompt > limits.proven:
        # A limit that another model or an older setting had: this request passed it.
        limits.proven = None
    if limits.cap is not None and limits.window is not None:
        budget = limits.budget
        if budget is not None and prompt > budget:
            # A request above the budget was answered: the provider does not reserve the cap.
            limits.cap_refuted, limits.cap = limits.cap, None
            settle_limits(state, context.rules)
    _grow(state, prompt, "provider", added, context)


def _grow(state: ChatState, value: int, source: str, added: int, context: Context) -> None:
    """Growth between two readings without a compaction between; jumps name their item."""
    meter = state.meter
    if meter.good is not None and meter.good_source == source and not meter.pending:
        step = value - meter.good
        push(meter.growth, step, GROWTH_STEPS)
        _note_jump(state, step, context)
        watch_counter(meter, step, added, value, context.rules.thresholds.cumulative_steps)
    state.history.biggest_new, state.history.biggest_new_tokens = None, 0


def _note_jump(state: ChatState, step: int, context: Context) -> None:
    window = state.limits.window
    if window and step > context.rules.thresholds.jump_share * window:
        state.meter.step, state.meter.jump_item = step, state.history.biggest_new


def calibrate(state: ChatState, local: int, prompt: int, crossing: float) -> None:
    """One more pair of the agent's count and the provider's, of a full request."""
    meter, budget = state.meter, state.limits.budget
    meter.pairs.append(local / prompt)
    if len(meter.pairs) > CALIBRATION_PAIRS:
        del meter.pairs[0]
    meter.calibration = median_ratio(meter.pairs)
    apart = local < crossing * prompt
    meter.crossed = budget is not None and apart and local <= budget < prompt


def learn_trigger(state: ChatState, before: int, context: Context) -> None:
    """Where the agent itself started: the last 3 automatic compactions tell.

    One that started far from the others says that those were something else, such as a first
    fold of a small history: it alone counts from then on.
    """
    learned = state.limits.learned
    if learned and not min(learned) / HABIT <= before <= max(learned) * HABIT:
        learned.clear()
    push(learned, before, 3)
    settle_trigger(state, context.rules.thresholds)
