"""After a command's success: recovering, until a later reading and an answer decide."""

from __future__ import annotations

from ctxhealth.core.changes import CommandChange
from ctxhealth.core.folding.context import Context
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
        record = _remember(state, event.command, event.kind, event.state, context.at)
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
        record = _remember(state, event.command, "", event.state, context.at)
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
    state.recovery = Recovery(
        command=command,
        kind=kind,
        at=context.at,
        seq=context.seq,
        generation=state.compactions.finished,
        reading=kind == "continue",
        answer=state.turns.waiting_since is None,
    )


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


def _remember(state: ChatState, command: str, kind: str, progress: str, at: int) -> CommandRecord:
    if len(state.commands) >= RECENT_COMMANDS:
        del state.commands[next(iter(state.commands))]
    record = CommandRecord(kind=kind, state=progress, at=at)
    state.commands[command] = record
    return record
