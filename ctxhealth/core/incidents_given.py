"""Commands that were given while an incident lasts, and how they ended."""

from __future__ import annotations

from ctxhealth.core.changes import CommandChange
from ctxhealth.core.folding.context import Context
from ctxhealth.core.incidents_parts import INCIDENT_COMMANDS, GivenCommand, OpenIncident
from ctxhealth.core.parts import TEXT
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import clip

READING_KINDS = frozenset({"snapshot", "ping"})
FINAL = frozenset({"succeeded", "failed", "refused", "expired", "cancelled", "unknown"})


def earlier_commands(state: ChatState, incident: OpenIncident) -> None:
    """Those given since the first evidence, before it was critical."""
    for name, record in state.commands.items():
        if record.seq >= incident.started_seq and record.kind not in READING_KINDS:
            given = GivenCommand(
                command=name,
                kind=record.kind,
                state=record.state,
                at=record.at,
                seq=record.seq,
                by=record.by,
            )
            _add(incident, given)


def take_command(state: ChatState, incident: OpenIncident, context: Context) -> bool:
    """The step of a command that this event is. True where the incident changed by it."""
    steps = context.changes.commands
    if not steps or steps[-1].chat_seq != context.seq:
        return False
    step = steps[-1]
    record = state.commands.get(step.command)
    if record is None or record.kind in READING_KINDS:
        return False
    known = next((one for one in incident.commands if one.command == step.command), None)
    if known is None:
        known = GivenCommand(
            command=step.command,
            kind=record.kind,
            state=record.state,
            at=record.at,
            seq=record.seq,
            by=record.by,
        )
        _add(incident, known)
    _move(known, step, record.state)
    return True


def _add(incident: OpenIncident, given: GivenCommand) -> None:
    if len(incident.commands) >= INCIDENT_COMMANDS:
        incident.lost += 1
        del incident.commands[0]
    incident.commands.append(given)
    if incident.acted_at is None and given.by is not None:
        incident.acted_at, incident.acted_by = given.at, given.by


def _move(known: GivenCommand, step: CommandChange, state: str) -> None:
    known.state = state
    if state in FINAL:
        known.ended_at = step.at
        known.before, known.after = step.before, step.after
        known.reason = clip(step.reason, TEXT)
