"""Turns: who waits for an answer, and how turns end."""

from __future__ import annotations

from ctxhealth.core.folding.context import Context
from ctxhealth.core.folding.latches import end_scope
from ctxhealth.core.folding.overtaken import overtake_all
from ctxhealth.core.folding.recovery import recovery_turn_ended
from ctxhealth.core.folding.relief import forget_asked_for
from ctxhealth.core.parts import TEXT
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import clip
from ctxhealth.wire.events import AgentStopped, TurnEnded, TurnStarted


def on_turn_started(state: ChatState, event: TurnStarted, context: Context) -> None:
    turns = state.turns
    turns.row_with_attempt = turns.row_with_attempt + 1 if turns.attempts else 0
    turns.attempts = 0
    turns.turn, turns.kind, turns.open = event.turn, event.kind, True
    turns.opened_seq = context.seq
    turns.count += 1
    if state.requests.above:
        state.requests.turn_passed = True
    turns.replies = 0
    state.requests.retry_local, state.requests.retries = None, 0
    if event.kind == "user":
        turns.user_count += 1
        if turns.waiting_since is None:
            turns.waiting_since, turns.waiting_turn = context.at, event.turn
    _start_topic(state)
    # A turn's latch is held until the next one begins: a failed turn may still be resumed.
    end_scope(state, context, ("step", "send", "turn"), "turn_end")
    context.changes.facts = True


def on_turn_ended(state: ChatState, event: TurnEnded, context: Context) -> None:
    turns = state.turns
    if turns.turn is not None and event.turn != turns.turn and turns.open:
        context.odd(f"turn {event.turn} ended while {turns.turn} was open")
    turns.open = False
    for sent in state.requests.open.values():
        # Agents that break a turn off do not always say so of its request.
        sent.over = not sent.utility
    if event.outcome == "answered":
        _answered(state)
        forget_asked_for(state)
        if turns.opened_seq is not None:
            overtake_all(state, turns.opened_seq, context)
    elif event.outcome == "cancelled":
        turns.waiting_since = turns.waiting_turn = None
        turns.failing = 0
    elif event.outcome == "error":
        turns.failing = 0 if turns.replies else turns.failing + 1
        turns.last_error = clip(event.error, TEXT)
    elif event.outcome == "stopped" and not turns.stopped:
        turns.stopped, turns.stopped_seq = True, context.seq
        turns.stopped_reason = clip(event.error, TEXT)
        turns.stopped_count = turns.stopped_limit = None
    recovery_turn_ended(state, event.outcome, context)
    context.changes.facts = True


def on_agent_stopped(state: ChatState, event: AgentStopped, context: Context) -> None:
    """The agent gave up; stays true until a turn is answered."""
    turns = state.turns
    turns.stopped, turns.stopped_seq = True, context.seq
    turns.stopped_reason = clip(event.reason, TEXT)
    turns.stopped_count, turns.stopped_limit = event.count, event.limit
    context.changes.facts = True


def _answered(state: ChatState) -> None:
    """An answered turn closes what stood for an event: stop, emptied, grew, jump."""
    turns, compactions, meter = state.turns, state.compactions, state.meter
    if turns.kind != "task":
        turns.waiting_since = turns.waiting_turn = None
    turns.answered += 1
    turns.failing = 0
    turns.last_error = None
    turns.stopped, turns.stopped_reason = False, None
    turns.stopped_count = turns.stopped_limit = None
    compactions.emptied = compactions.grew_before = compactions.grew_after = None
    compactions.refused = compactions.lossy = None
    compactions.ineffective = False
    meter.step = None
    state.history.lost_tail = state.history.stale_tail = None
    state.replies.nothing_visible = False
    for record in state.latches.open.values():
        record.rescue_blocked = False


def _start_topic(state: ChatState) -> None:
    """Without topic ids of the agent's own, a past turn is a topic."""
    history = state.history
    if history.topic is None and history.current:
        history.topics = (history.topics or 0) + history.current
        history.current = 0
