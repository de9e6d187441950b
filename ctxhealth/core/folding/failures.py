"""Requests that failed: an overflow states limits, a refusal names what is broken."""

from __future__ import annotations

from ctxhealth.core.folding.context import Context
from ctxhealth.core.folding.latches import refresh_latches
from ctxhealth.core.folding.pairing import named_pair
from ctxhealth.core.folding.readings import error_reading
from ctxhealth.core.folding.recovery import recovery_failed
from ctxhealth.core.folding.relief import overflow_after_attempt
from ctxhealth.core.limits import settle_limits
from ctxhealth.core.overflow import Overflow, parse_overflow, stated_numbers
from ctxhealth.core.parts import OpenRequest
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import number
from ctxhealth.wire.events import ModelFailed

# Under these names agents file what they did not tell apart; the text decides.
_TO_READ = frozenset({"overflow", "invalid", "too_large", "provider", "other"})


def on_model_failed(state: ChatState, event: ModelFailed, context: Context) -> None:
    requests = state.requests
    sent = requests.open.pop(event.request, None)
    if event.purpose == "utility" or (sent is not None and sent.utility):
        return
    requests.failed += 1
    overflow = overflow_of(event)
    requests.last_error = event.error if overflow is None else "overflow"
    if event.error == "cancelled":
        # Somebody broke it off: what follows is no retry.
        requests.retry_local, requests.retries = None, 0
    elif sent is not None and sent.local is not None:
        requests.retry_local = sent.local
    if overflow is not None:
        _take_overflow(state, overflow, event, sent, context)
    elif event.error == "too_large":
        requests.too_large = True
    elif event.error == "invalid":
        named_pair(state, event)
    context.changes.facts = True


def overflow_of(event: ModelFailed) -> Overflow | None:
    """The overflow that a failure is, by the agent's own word or its text's; its numbers first."""
    if event.error not in _TO_READ:
        return None
    read = parse_overflow(event.status, event.code, event.detail)
    if read is None:
        stated = event.stated_prompt is not None and event.stated_window is not None
        above = stated and (event.stated_prompt or 0) > (event.stated_window or 0)
        if event.error != "overflow" and not above:
            return None
        read = stated_numbers(event.detail or "")
    window = read.stated_window if event.stated_window is None else event.stated_window
    prompt = read.stated_prompt if event.stated_prompt is None else event.stated_prompt
    return read._replace(stated_window=window or None, stated_prompt=prompt)


def _take_overflow(
    state: ChatState,
    overflow: Overflow,
    event: ModelFailed,
    sent: OpenRequest | None,
    context: Context,
) -> None:
    requests = state.requests
    requests.overflow, requests.overflow_seq = True, context.seq
    requests.overflow_prompt = overflow.stated_prompt
    asked = sent.max_output if sent is not None else None
    requests.overflow_output = overflow.stated_output or asked
    _take_limits(state, overflow, context)
    if overflow.stated_prompt is not None:
        error_reading(state, overflow.stated_prompt, event.request, context)
    generation = state.compactions.finished if sent is None else sent.generation
    overflow_after_attempt(state, generation, context)
    for record in state.latches.open.values():
        if not {"overflow", "reactive"} & set(record.view.bypass):
            record.rescue_blocked = True
    refresh_latches(state, context)
    recovery_failed(state)


def _take_limits(state: ChatState, overflow: Overflow, context: Context) -> None:
    """The stated limit is an upper bound; an output it was counted with is reserved for good."""
    limits, stated = state.limits, overflow.stated_window
    if stated is not None:
        limits.proven = stated
        if _is_news(state, stated, context):
            limits.evidence, limits.evidence_at_least = stated, False
            limits.evidence_detail = f"an overflow error states {number(stated)}"
    elif overflow.stated_prompt is not None:
        # Refused at this size: the limit is no larger, whatever it is.
        limits.proven = overflow.stated_prompt
    if overflow.kind == "output":
        limits.cap, limits.cap_refuted = overflow.stated_output, None
    settle_limits(state, context.rules)


def _is_news(state: ChatState, stated: int, context: Context) -> bool:
    """A limit that a source already gives as its maximum input says nothing new of the window."""
    limits = state.limits
    if limits.window is not None and stated >= limits.window and not limits.evidence_at_least:
        return False
    known = [state.facts.max_input, *(entry.max_input for entry in limits.candidates)]
    share = context.rules.thresholds.window_conflict_share * stated
    return not any(value is not None and abs(value - stated) <= share for value in known)
