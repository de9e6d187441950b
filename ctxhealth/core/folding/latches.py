"""Latches: what keeps compaction from running, and whether its reason justifies it."""

from __future__ import annotations

import msgspec

from ctxhealth.core.attempts import calls_made
from ctxhealth.core.folding.context import Context
from ctxhealth.core.latching import describe_latch, latch_kind, release_rule
from ctxhealth.core.model import LatchView
from ctxhealth.core.parts import TEXT
from ctxhealth.core.state import OPEN_LATCHES, ChatState, LatchRecord
from ctxhealth.core.wording import clip
from ctxhealth.wire.events import LatchCleared, LatchSet

# Kinds whose judgement or advice moves with the load; the others wait for a compaction.
BY_LOAD = frozenset({"cooldown", "exhausted", "inferred", "no_gain"})


def on_latch_set(state: ChatState, event: LatchSet, context: Context) -> None:
    calls = _calls_of(state, event.attempt)
    kind = latch_kind(event, calls, state.compactions.summarizer_row)
    release, holder = event.release, event.holder
    view = LatchView(
        latch=event.latch,
        kind=kind,
        scope=event.scope,
        justified=None,
        why="",
        set_at=context.at,
        set_seq=context.seq,
        reason=clip(event.reason, TEXT),
        attempt=event.attempt,
        calls=calls,
        tokens=event.tokens,
        key=clip(event.key, TEXT),
        bypass=tuple(event.bypass[:8]) if event.bypass is not None else (),
        lapses=release_rule(event),
        holder=(holder.id or holder.host) if holder else None,
    )
    record = LatchRecord(
        view=view,
        until=release.until if release else None,
        turn_end=bool(release and release.turn_end),
        success=bool(release and release.success),
        holder_alive=holder.alive if holder else None,
    )
    _open(state, record, context)


def on_latch_cleared(state: ChatState, event: LatchCleared, context: Context) -> None:
    record = state.latches.open.pop(event.latch, None)
    if record is None:
        context.odd(f"latch {event.latch} cleared but was not set")
        return
    by = state.commands[event.command].by if event.command in state.commands else None
    _close(record, event.how, by, context)


def end_scope(state: ChatState, context: Context, scopes: tuple[str, ...], how: str) -> None:
    """A silent agent's latch ends with its scope."""
    if not state.latches.open:
        return
    for name, record in list(state.latches.open.items()):
        if record.view.scope in scopes or (how == "turn_end" and record.turn_end):
            del state.latches.open[name]
            _close(record, how, None, context)


def end_cooldowns(state: ChatState, context: Context) -> None:
    """A timer that ran out holds nothing."""
    for name, record in list(state.latches.open.items()):
        if record.until is not None and context.at >= record.until:
            del state.latches.open[name]
            _close(record, "time", None, context)


def refresh_latches(state: ChatState, context: Context) -> None:
    """Judge open latches anew after load, failures or holder changed."""
    for record in state.latches.open.values():
        view = describe_latch(state, record, context.rules.thresholds)
        if view != record.view:
            record.view = view
            context.changes.latches[view.latch, view.set_seq] = view


def infer_latch(state: ChatState, context: Context) -> None:
    """None reported, but after failures nothing is tried any more though it should be."""
    compactions, latches = state.compactions, state.latches
    failed = compactions.summarizer_row or compactions.no_relief
    due = state.requests.above >= context.rules.thresholds.inferred_requests
    if latches.open or not failed or not due or not compactions.recent:
        return
    if state.limits.trigger_source == "learned" and len(state.limits.learned) < 2:
        # One compaction is no habit: that nothing is tried below it may be how the agent works.
        return
    last = compactions.recent[-1]
    view = LatchView(
        latch=f"inferred-{last.attempt}"[:200],
        kind="inferred",
        scope="chat",
        justified=None,
        why="",
        set_at=context.at,
        set_seq=context.seq,
        attempt=last.attempt,
        calls=calls_made(last),
        lapses="at the next attempt",
        inferred=True,
    )
    _open(state, LatchRecord(view=view), context)


def end_inferred(state: ChatState, context: Context) -> None:
    """An attempt ran, or the load is fine: what we inferred no longer holds."""
    if not state.latches.open:
        return
    for name, record in list(state.latches.open.items()):
        if record.view.inferred:
            del state.latches.open[name]
            _close(record, "success", None, context)


def _calls_of(state: ChatState, attempt: str | None) -> int | None:
    """Summarizer calls of the attempt that set the latch; None where it is not known."""
    if attempt is None:
        return None
    for view in reversed(state.compactions.recent):
        if view.attempt == attempt:
            return calls_made(view)
    return None


def _open(state: ChatState, record: LatchRecord, context: Context) -> None:
    latches = state.latches
    name = record.view.latch
    before = latches.open.pop(name, None)
    if before is not None:
        _close(before, "set_again", None, context)
    elif len(latches.open) >= OPEN_LATCHES:
        # Whoever sets so many clears none of them: the oldest is no longer followed.
        latches.lost += 1
        _close(latches.open.pop(next(iter(latches.open))), "forgotten", None, context)
    record.view = describe_latch(state, record, context.rules.thresholds)
    latches.open[name] = record
    latches.total += 1
    context.changes.latches[name, record.view.set_seq] = record.view
    context.changes.facts = True


def _close(record: LatchRecord, how: str, by: str | None, context: Context) -> None:
    view = msgspec.structs.replace(
        record.view,
        cleared_at=context.at,
        cleared_how=how,
        cleared_by=by,
        recommended=(),
        discouraged=(),
    )
    context.changes.latches[view.latch, view.set_seq] = view
    context.changes.facts = True
