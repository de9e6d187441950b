"""One event into one chat's state, in place, in time that does not depend on the chat's length.

``fold`` is the only way in: the writer, the replay and the readers all use it, so the state at
any event is the same however it was reached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ctxhealth.core.changes import Changes
from ctxhealth.core.findings.evaluate import evaluate
from ctxhealth.core.folding import (
    chat,
    compaction,
    failures,
    history,
    latches,
    recovery,
    requests,
    server,
    turns,
)
from ctxhealth.core.folding.context import Context
from ctxhealth.core.folding.replies import on_reply_empty
from ctxhealth.core.incidents import follow
from ctxhealth.core.rules import Rules
from ctxhealth.core.state import ChatState, new_state
from ctxhealth.wire import events as wire
from ctxhealth.wire.events import Event

Handler = Callable[[ChatState, Any, Context], None]

__all__ = ["Stamp", "fold", "fold_rejected", "new_state"]


class Stamp(NamedTuple):
    """Where and when: ``chat_seq`` in the chat's own order, ``at`` in server milliseconds.

    For chats read from a transcript ``at`` is the transcript's time.
    """

    chat_seq: int
    at: int


def _reply_empty(state: ChatState, event: wire.ReplyEmpty, context: Context) -> None:
    on_reply_empty(state, event)
    context.changes.facts = True


_HANDLERS: dict[type, tuple[Handler, str]] = {
    wire.ChatOpened: (chat.on_chat_facts, "facts"),
    wire.ChatUpdated: (chat.on_chat_facts, "facts"),
    wire.ChatClosed: (chat.on_chat_closed, "tick"),
    wire.TurnStarted: (turns.on_turn_started, "turn"),
    wire.TurnEnded: (turns.on_turn_ended, "turn_end"),
    wire.MessageAdded: (history.on_message_added, "message"),
    wire.CountedMessage: (history.on_message_added, "message"),
    wire.HistorySnapshot: (history.on_history_snapshot, "snapshot"),
    wire.RequestSent: (requests.on_request_sent, "sent"),
    wire.ModelReplied: (requests.on_model_replied, "replied"),
    wire.ModelFailed: (failures.on_model_failed, "failed"),
    wire.CompactionStarted: (compaction.on_compaction_started, "started"),
    wire.CompactionFinished: (compaction.on_compaction_finished, "finished"),
    wire.LatchSet: (latches.on_latch_set, "latch"),
    wire.LatchCleared: (latches.on_latch_cleared, "latch"),
    wire.GuardRefused: (requests.on_guard_refused, "failed"),
    wire.ReplyEmpty: (_reply_empty, "reply"),
    wire.AgentStopped: (turns.on_agent_stopped, "turn"),
    wire.UsageUpdate: (requests.on_usage_update, "replied"),
    wire.CommandProgress: (recovery.on_command_progress, "none"),
    wire.Gap: (server.on_gap, "intake"),
    wire.Note: (server.on_note, "intake"),
    wire.ServerConnected: (server.on_server_connected, "link"),
    wire.ServerDisconnected: (server.on_server_disconnected, "link"),
    wire.ServerTick: (server.on_server_tick, "tick"),
    wire.ServerCommand: (recovery.on_server_command, "none"),
}
_SERVER = frozenset(
    {wire.ServerConnected, wire.ServerDisconnected, wire.ServerTick, wire.ServerCommand}
)


def fold(state: ChatState, event: Event, stamp: Stamp, changes: Changes, rules: Rules) -> None:
    """Fold ``event`` into ``state`` and note in ``changes`` what else must be written.

    Never raises: an event that makes no sense becomes one of ``changes.oddities``.
    """
    kind = type(event)
    seq, at = stamp
    state.seq = seq
    changes.state = state
    context = Context(seq, at, changes, rules)
    handler = _HANDLERS.get(kind)
    if kind not in _SERVER:
        state.events += 1
        if state.last_event_at is None or at > state.last_event_at:
            state.last_event_at = at
    if handler is None:
        return
    try:
        handler[0](state, event, context)
        evaluate(state, handler[1], context)
        if state.severity == "critical" or state.incident is not None:
            follow(state, handler[1], context)
    except Exception as error:
        # One event that the fold cannot digest must not stop every other chat's intake.
        context.odd(f"internal {type(error).__name__} at {kind.__name__}: {error}")


def fold_rejected(
    state: ChatState, code: str, stamp: Stamp, changes: Changes, rules: Rules
) -> None:
    """Fold the tombstone of an event that was refused for ``code``."""
    state.seq = stamp.chat_seq
    changes.state = state
    server.take_rejected(state, code)
    changes.facts = True
    evaluate(state, "intake", Context(stamp.chat_seq, stamp.at, changes, rules))
