"""Requests to models: sent, answered, refused before they left."""

from __future__ import annotations

from ctxhealth.core.folding.chat import take_reply_model
from ctxhealth.core.folding.context import Context, push
from ctxhealth.core.folding.latches import BY_LOAD, end_inferred, infer_latch, refresh_latches
from ctxhealth.core.folding.overtaken import overtake_requests
from ctxhealth.core.folding.pairing import accept_pairs, overdue_calls
from ctxhealth.core.folding.readings import (
    calibrate,
    own_count,
    provider_reading,
    unreliable_reading,
)
from ctxhealth.core.folding.recovery import recovery_failed, recovery_reading, still_over
from ctxhealth.core.folding.relief import ease, judge_relief, overflow_after_attempt
from ctxhealth.core.folding.replies import take_reply
from ctxhealth.core.latching import is_pressed
from ctxhealth.core.limits import overdue_line, settle_limits
from ctxhealth.core.meter import load_now, on_provider_scale
from ctxhealth.core.parts import DURATIONS, OPEN_REQUESTS, TEXT, OpenRequest
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.usage import count_usage
from ctxhealth.core.wording import clip
from ctxhealth.wire.events import GuardRefused, ModelReplied, RequestSent, UsageUpdate


def on_request_sent(state: ChatState, event: RequestSent, context: Context) -> None:
    requests, meter = state.requests, state.meter
    utility = event.purpose == "utility"
    if len(requests.open) >= OPEN_REQUESTS and event.request not in requests.open:
        requests.lost += 1
        del requests.open[next(iter(requests.open))]
    requests.open[event.request] = OpenRequest(
        at=context.at,
        ts=event.ts,
        seq=context.seq,
        utility=utility,
        local=event.local,
        max_output=event.max_output,
        bytes=_text_bytes(state, event),
        generation=state.compactions.finished,
        delta=bool(event.delta),
        added=meter.added,
        attempt=event.attempt,
    )
    if utility:
        state.compactions.summary_input = event.local
        state.compactions.summary_output = event.max_output
        return
    if event.bytes is not None and not event.delta:
        state.history.request_bytes = event.bytes
    if event.images is not None:
        state.history.images = event.images
    _take_cap(state, event.max_output, context)
    if state.history.open_calls:
        overdue_calls(state, context)
    if event.local is not None and not event.delta:
        meter.local = event.local
        _count_retries(state, event.local)
        if meter.source in ("unknown", "local") and not meter.pending:
            count = on_provider_scale(state, event.local)
            own_count(state, count, "local", event.request, meter.added, context)
    context.changes.facts = True


def _text_bytes(state: ChatState, event: RequestSent) -> int | None:
    """Bytes that can be held against tokens: pictures are large and cost few of them."""
    pictures = event.images if event.images is not None else state.history.images
    return None if pictures else event.bytes


def _take_cap(state: ChatState, cap: int | None, context: Context) -> None:
    """An output cap declared on the request is part of the reserve, until proved otherwise."""
    limits = state.limits
    if cap is None or cap == limits.cap:
        return
    if limits.cap_refuted is not None and cap >= limits.cap_refuted:
        return
    limits.cap = cap
    settle_limits(state, context.rules)


def _count_retries(state: ChatState, local: int) -> None:
    requests = state.requests
    if requests.retry_local is None:
        requests.retries = 0
        return
    requests.retries = requests.retries + 1 if local > requests.retry_local else 0


def on_model_replied(state: ChatState, event: ModelReplied, context: Context) -> None:
    requests = state.requests
    sent = requests.open.pop(event.request, None)
    if event.synthetic:
        requests.synthetic += 1
        return
    utility = event.purpose == "utility" or (sent is not None and sent.utility)
    if utility:
        return
    _take_duration(state, event.ms, event.ts, sent)
    if event.model is not None and event.model != state.facts.model:
        take_reply_model(state, event.model, context)
    requests.answered += 1
    requests.overflow = requests.too_large = False
    requests.overflow_prompt = requests.overflow_output = None
    requests.guard_count = requests.guard_limit = None
    requests.retry_local, requests.retries = None, 0
    requests.last_error = None
    accept_pairs(state.history)
    if requests.open and sent is not None:
        overtake_requests(state, sent.seq, context)
    prompt = _take_usage(state, event, sent, context)
    _after_reply(state, event, prompt, sent, context)
    context.changes.facts = True


def _take_usage(
    state: ChatState, event: ModelReplied, sent: OpenRequest | None, context: Context
) -> int | None:
    """The load of this reply into the meter; returns the provider's prompt where it counts."""
    counted = count_usage(event.usage)
    meter = state.meter
    meter.completion = counted.output
    if sent is not None and sent.generation < meter.generation:
        # Built before the compaction: it says nothing about the context after it.
        if counted.prompt is not None and sent.local is not None and not sent.delta:
            crossing = context.rules.thresholds.crossing
            calibrate(state, sent.local, counted.prompt, crossing)
        return counted.prompt if counted.doubt is None else None
    if counted.doubt is not None and counted.prompt is not None:
        unreliable_reading(state, counted.prompt, event.request, counted.doubt, context)
        return None
    if counted.prompt is not None:
        provider_reading(state, counted, event.request, sent, context)
        return counted.prompt if meter.doubt is None else None
    if sent is not None and sent.local is not None and not sent.delta:
        count = on_provider_scale(state, sent.local)
        own_count(state, count, "local", event.request, sent.added, context)
    return None


def _after_reply(
    state: ChatState,
    event: ModelReplied,
    prompt: int | None,
    sent: OpenRequest | None,
    context: Context,
) -> None:
    generation = state.compactions.finished if sent is None else sent.generation
    judge_relief(state, generation, context)
    meaningful = take_reply(state, event, prompt, context.at)
    pressed = is_pressed(state)
    _count_above(state, pressed, context)
    ease(state, context)
    if any(record.view.kind in BY_LOAD for record in state.latches.open.values()):
        refresh_latches(state, context)
    if state.recovery is not None:
        if event.content is not None and not meaningful:
            recovery_failed(state)
        elif not state.meter.pending:
            recovery_reading(state, generation, still_over(state))


def _count_above(state: ChatState, pressed: bool | None, context: Context) -> None:
    """Answered requests above the trigger, and close to the budget, since the last attempt."""
    requests = state.requests
    load, budget = load_now(state), state.limits.budget
    if load is not None and budget is not None:
        close = _is_close(state, load, budget, context.rules.thresholds)
        requests.tight = requests.tight + 1 if close else 0
    if pressed:
        requests.above += 1
        infer_latch(state, context)
    elif pressed is False:
        requests.above = 0
        requests.turn_passed = False
        if state.latches.open:
            end_inferred(state, context)


def _is_close(state: ChatState, load: int, budget: int, t: Thresholds) -> bool:
    """Above the line where a compaction is overdue; it lies at 90% of the budget or higher."""
    if load <= t.overdue_share * budget - 1:
        return False
    line = overdue_line(state, t, t.overdue_room)
    return line is not None and load > line


def _take_duration(state: ChatState, ms: int | None, ts: int, sent: OpenRequest | None) -> None:
    if ms is None and sent is not None and ts >= sent.ts:
        ms = ts - sent.ts
    if ms is not None:
        push(state.requests.durations, ms, DURATIONS)


def on_guard_refused(state: ChatState, event: GuardRefused, context: Context) -> None:
    """The agent refused visibly before sending: correct behaviour, and a reading of its own."""
    state.requests.guard_count, state.requests.guard_limit = event.count, event.limit
    state.compactions.refused = clip(event.code, TEXT) or "CONTEXT_UNFIT"
    if event.count is not None and (state.meter.source != "provider" or state.meter.pending):
        own_count(state, event.count, "agent", None, state.meter.added, context)
    # What does not fit is not sent: an attempt right before it brought no relief.
    overflow_after_attempt(state, state.compactions.finished, context)
    context.changes.facts = True


def on_usage_update(state: ChatState, event: UsageUpdate, context: Context) -> None:
    """The agent's own gauge: used of size. A provider's reading is not overwritten by it."""
    if event.size and event.size != state.facts.window:
        state.facts.window = event.size
        settle_limits(state, context.rules)
    if event.used and (state.meter.source != "provider" or state.meter.pending):
        own_count(state, event.used, "agent", None, state.meter.added, context)
        generation = state.compactions.finished
        judge_relief(state, generation, context)
        if state.recovery is not None and not state.meter.pending:
            recovery_reading(state, generation, still_over(state))
    context.changes.facts = True
