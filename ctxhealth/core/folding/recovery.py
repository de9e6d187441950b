"""After a command's success: recovering, until a later reading and an answer decide."""

from __future__ import annotations

from ctxhealth.core.changes import CommandChange
from ctxhealth.core.folding.context import Context
from ctxhealth.core.latching import is_pressed
from ctxhealth.core.meter import load_now
from ctxhealth.core.parts import TEXT
from ctxhealth.core.state import RECENT_COMMANDS, ChatState, CommandRecord, Recovery
from ctxhealth.core.wording import clip
from ctxhealth.wire.events import CommandProgress, ServerCommand

_HEALING = frozenset(
    {
        "compact_fallback", "clear_latch", "compact_summarize", "continue", "rescue",
        "repair_pairs", "restore_backup",
    }
)  # fmt: skip
_FINAL = frozenset({"succeeded", "failed", "refused", "expired", "cancelled", "unknown"})


def on_server_command(state: ChatState, event: ServerCommand, context: Context) -> None:
    """The server's half of a command: queued, sent, expired, cancelled, unknown."""
    record = state.commands.get(event.command)
    if record is None:
        record = _remember(state, event.command, event.kind, event.state, context)
        record.by = event.by
    else:
        record.kind = event.kind
        if record.state not in _FINAL:
            record.state = event.state
    context.changes.commands.append(
        CommandChange(
            command=event.command,
            state=event.state,
            chat_seq=context.seq,
            at=context.at,
            kind=event.kind,
            reason=clip(event.reason, TEXT),
        )
    )


def on_command_progress(state: ChatState, event: CommandProgress, context: Context) -> None:
    """The agent's half. Terminal is final: a replayed result changes nothing."""
    record = state.commands.get(event.command)
    if record is None:
        record = _remember(state, event.command, "", event.state, context)
    elif record.state in _FINAL:
        context.odd(f"command {event.command} is {record.state}, {event.state} came after")
        return
    record.state = event.state
    context.changes.commands.append(
        CommandChange(
            command=event.command,
            state=event.state,
            chat_seq=context.seq,
            at=context.at,
            kind=record.kind or None,
            reason=event.reason,
            before=event.before,
            after=event.after,
            backup=event.backup,
            detail=event.detail,
        )
    )
    if event.state == "succeeded" and record.kind in _HEALING:
        start_recovery(state, event.command, record.kind, context)
    context.changes.facts = True


def start_recovery(state: ChatState, command: str, kind: str, context: Context) -> None:
    """Wait for reading and answer, or settle at once where the agent was faster than its receipt.

    An agent's loop may send the next request, and be answered, before its receipt arrives.
    """
    counted = _counted_since(state, command, kind)
    if counted and still_over(state):
        return
    state.recovery = Recovery(
        command=command,
        kind=kind,
        at=context.at,
        seq=context.seq,
        generation=state.compactions.finished,
        reading=counted or kind == "continue",
        answer=state.turns.waiting_since is None,
    )
    _settle(state)


def still_over(state: ChatState) -> bool:
    """Still over: above a declared or learned trigger, or above the budget."""
    if state.limits.trigger_source in ("declared", "learned") and is_pressed(state):
        return True
    load, budget = load_now(state), state.limits.budget
    return load is not None and budget is not None and load > budget


def _counted_since(state: ChatState, command: str, kind: str) -> bool:
    """Whether the newest reading already shows what the command did.

    It is of a request built after a compaction that ran since the command was given; a cleared
    latch needs no compaction where the load is fine.
    """
    if load_now(state) is None or state.compactions.unjudged is not None:
        return False
    given = state.commands[command].seq
    if any((view.finished_seq or 0) > given for view in state.compactions.recent):
        return True
    return kind == "clear_latch" and not still_over(state)


def recovery_reading(state: ChatState, generation: int, over: bool) -> None:
    """A reading of a request built after the success: relief, or the recovery failed."""
    recovery = state.recovery
    if recovery is None or generation < recovery.generation:
        return
    if over:
        state.recovery = None
        return
    recovery.reading = True
    _settle(state)


def recovery_turn_ended(state: ChatState, outcome: str, context: Context) -> None:
    recovery = state.recovery
    if recovery is None:
        return
    if (state.turns.opened_seq or 0) < recovery.seq and outcome != "answered":
        # The turn that was already failing ends; it says nothing about the recovery.
        return
    if outcome in ("error", "stopped", "silent"):
        state.recovery = None
    elif outcome in ("answered", "cancelled"):
        recovery.answer = True
        # An answered turn is relief even where no request can be counted.
        if state.meter.source in ("unknown", "pending"):
            recovery.reading = True
        _settle(state)


def recovery_failed(state: ChatState) -> None:
    """A later request was refused or came back empty: the old findings count again."""
    state.recovery = None


def _settle(state: ChatState) -> None:
    recovery = state.recovery
    if recovery is not None and recovery.reading and recovery.answer:
        state.recovery = None


def _remember(
    state: ChatState, command: str, kind: str, progress: str, context: Context
) -> CommandRecord:
    if len(state.commands) >= RECENT_COMMANDS:
        del state.commands[next(iter(state.commands))]
    record = CommandRecord(kind=kind, state=progress, at=context.at, seq=context.seq)
    state.commands[command] = record
    return record
