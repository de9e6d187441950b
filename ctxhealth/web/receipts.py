"""A command's receipt: where it stands, what it waits for, what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ctxhealth.core.model import AttemptView
from ctxhealth.store.queries import CommandRow
from ctxhealth.web import states
from ctxhealth.web.actions import ACTIONS, Action
from ctxhealth.web.format import number, percent, words

STATIONS = ("queued", "sent", "received", "started", "succeeded")
CANCELLABLE = frozenset({"queued", "sent", "received", "waiting"})
FINAL = frozenset({"succeeded", "failed", "refused", "expired", "cancelled", "unknown"})
_SAYS = {
    "queued": "Stored; the agent has been poked.",
    "sent": "On its way to the agent.",
    "received": "The agent has it.",
    "waiting": "The agent waits for a safe point",
    "started": "The agent is at it.",
    "succeeded": "Done.",
    "failed": "The agent tried and failed",
    "refused": "The agent refused",
    "expired": "It did not reach the agent in time and will not run any more",
    "cancelled": "Cancelled before it started",
    "unknown": "The agent went away half-way: whether it acted is not known",
}


@dataclass(frozen=True, slots=True)
class Station:
    name: str
    kind: str  # done, now, ahead, bad


@dataclass(frozen=True, slots=True)
class Receipt:
    command: CommandRow
    action: Action
    state: states.Meta
    says: str
    result: str
    stations: tuple[Station, ...]
    final: bool
    cancellable: bool
    undo: bool = False


def receipt_of(command: CommandRow, *, undo: bool = False) -> Receipt:
    action = ACTIONS.get(command.kind) or Action(command.kind, words(command.kind), "wrench", "")
    return Receipt(
        command=command,
        action=action,
        state=states.command(command.state),
        says=_says(command),
        result=_result(command),
        stations=_stations(command.state),
        final=command.state in FINAL,
        cancellable=command.state in CANCELLABLE,
        undo=undo,
    )


def _says(command: CommandRow) -> str:
    """Where it stands, with the agent's own reason and words."""
    said = _SAYS.get(command.state, words(command.state)).rstrip(".")
    reason = command.state_reason
    if reason:
        said = f"{said}: {words(reason) if ' ' not in reason else reason.rstrip('.')}"
    told = command.detail if isinstance(command.detail, str) else ""
    return f"{said}. {told}" if told and told != reason else f"{said}."


def _result(command: CommandRow) -> str:
    if command.before is None or command.after is None:
        return ""
    change = f"{number(command.before)} → {number(command.after)} tokens"
    freed = command.before - command.after
    return f"{change}, {percent(freed, command.before)} freed" if freed > 0 else change


def _stations(state: str) -> tuple[Station, ...]:
    """The way of a command; one that ended elsewhere shows its end in the last place."""
    at = "received" if state == "waiting" else state
    if at not in STATIONS:
        return (*(Station(name, "ahead") for name in STATIONS[:-1]), Station(state, "bad"))
    place = STATIONS.index(at)
    named = [*STATIONS]
    if state == "waiting":
        named[place] = "waiting"
    return tuple(
        Station(
            name,
            "done" if i < place or state == "succeeded" else "now" if i == place else "ahead",
        )
        for i, name in enumerate(named)
    )


def receipts_of(
    commands: Iterable[CommandRow], attempts: Iterable[AttemptView], *, reachable: bool = True
) -> list[Receipt]:
    """Newest first. Undo is offered for the last fallback until the next compaction begins,
    while the agent is ``reachable``."""
    listed = list(commands)
    undoable = _undoable(listed, list(attempts)) if reachable else ""
    return [receipt_of(command, undo=command.id == undoable) for command in listed]


def _undoable(commands: list[CommandRow], attempts: list[AttemptView]) -> str:
    for command in commands:
        if command.kind not in ("compact_fallback", "restore_backup", "rescue"):
            continue
        if command.state != "succeeded":
            continue
        ended = command.ended_at or command.created_at
        later = any((a.started_at or 0) > ended for a in attempts)
        if command.kind == "compact_fallback" and command.backup and not later:
            return command.id
        return ""
    return ""
