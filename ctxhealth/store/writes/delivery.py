"""Commands on their way: sent over a connection, moved by the agent, ended by the clock.

Every step is a conditional update, forward only: whoever comes second changes nothing. Each step
of the server's own is also an event in the chat's log, so that the fold and a review see it.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from django.db.models import Q

from ctxhealth.store import unit
from ctxhealth.store.models import Agent, Command
from ctxhealth.store.models.actions import FINAL_STATES
from ctxhealth.store.through import call
from ctxhealth.store.unit import CommandChange, Progress, Unit
from ctxhealth.wire.events import ServerCommand
from ctxhealth.wire.frames import Command as CommandFrame
from ctxhealth.wire.frames import Expected
from ctxhealth.wire.types import CommandKind, CommandState

# What may come before each state; a state that is not here is never entered by an agent.
EARLIER: dict[str, tuple[str, ...]] = {
    "received": ("queued", "sent"),
    "waiting": ("queued", "sent", "received", "waiting"),
    "started": ("queued", "sent", "received", "waiting"),
    **dict.fromkeys(FINAL_STATES, ("queued", "sent", "received", "waiting", "started")),
}
STAMPS = {"received": "received_at", "waiting": "received_at", "started": "started_at"}


def commands_take(*, agent: int, conn_no: int) -> list[CommandFrame]:
    """The frames to send over this connection now; each is marked as sent over it."""
    return call(_take, agent, conn_no)


def command_expire_due(*, now: int | None = None, limit: int = 200) -> int:
    """End what was not received in time, or did not end within its lease; how many."""
    return call(_expire, now, limit)


def _take(agent: int, conn_no: int) -> list[CommandFrame]:
    work = current_unit()
    if not Agent.objects.filter(id=agent, conn_no=conn_no).exists():
        return []
    rows = Command.objects.select_related("chat").filter(
        Q(state="queued") | Q(state="sent") & ~Q(sent_conn=conn_no),
        agent_id=agent,
        deliver_by__gt=work.now,
        cancel_asked_at=None,
    )
    frames = []
    for command in rows.order_by("id")[:100]:
        first = command.state == "queued"
        Command.objects.filter(id=command.id, state=command.state).update(
            state="sent", sent_at=command.sent_at or work.now, sent_conn=conn_no
        )
        if first:
            tell(work, command, "sent", "")
        frames.append(_frame(command, work.now))
    return frames


def _frame(command: Command, now: int) -> CommandFrame:
    return CommandFrame(
        id=command.id,
        kind=cast(CommandKind, command.kind),
        deliver_ms=command.deliver_by - now,
        lease_s=command.lease_s,
        chat=command.chat.external_id if command.chat else None,
        args=msgspec.json.decode(command.args),
        expected=Expected(
            epoch=command.expected_epoch or None,
            compaction=command.expected_compaction,
            latch=command.expected_latch or None,
        ),
        reason=command.reason,
        by=command.by_name,
    )


def _expire(now: int | None, limit: int) -> int:
    work = current_unit()
    moment = work.now if now is None else now
    undelivered = Q(state__in=("queued", "sent"), deliver_by__lte=moment)
    overdue = Q(state__in=("received", "waiting", "started"), lease_until__lte=moment)
    due = list(Command.objects.filter(undelivered | overdue, open=True).order_by("id")[:limit])
    for command in due:
        if command.state == "started":
            end(work, command, "unknown", "no result within its lease")
        elif command.state in ("received", "waiting"):
            end(work, command, "expired", "no safe point within its lease")
        else:
            end(work, command, "expired", "not received in time")
    return len(due)


def commands_of_new_epoch(work: Unit, agent: int, epoch: str) -> None:
    """The agent came back without its memory: what it had not started is stale."""
    rows = Command.objects.filter(agent_id=agent, open=True).exclude(expected_epoch=epoch)
    for command in rows:
        if command.state == "started":
            end(work, command, "unknown", "the agent lost its outbox after it started")
        else:
            end(work, command, "refused", "stale: the agent began a new epoch")


def command_progress(work: Unit, step: Progress) -> None:
    """Apply what an agent reports of one of its commands; out of order or late changes nothing."""
    event, state = step.event, step.event.state
    if state not in EARLIER:
        return
    values: dict[str, Any] = {"state": state, "state_reason": event.reason or ""}
    if state in STAMPS:
        values[STAMPS[state]] = step.at
    if state in FINAL_STATES:
        values.update(open=False, ended_at=step.at, **_result(step))
    command = Command.objects.filter(id=event.command, agent_id=step.agent).first()
    if command is None:
        return
    if command.lease_until is None:
        values["lease_until"] = step.at + command.lease_s * 1_000
    rows = Command.objects.filter(id=command.id, state__in=EARLIER[state])
    if rows.update(**values):
        changed(work, command, state)
        if state == "succeeded":
            # Pressing builds on what is here, so it can only be asked for late.
            from ctxhealth.store.writes.commands import press_follow_up

            press_follow_up(command)


def _result(step: Progress) -> dict[str, Any]:
    event = step.event
    return {
        "before": event.before,
        "after": event.after,
        "backup": event.backup or "",
        "detail": msgspec.json.encode(event.detail).decode() if event.detail is not None else "",
    }


def end(work: Unit, command: Command, state: str, reason: str) -> None:
    rows = Command.objects.filter(id=command.id, state__in=EARLIER[state])
    if rows.update(state=state, state_reason=reason, open=False, ended_at=work.now):
        tell(work, command, state, reason)


def tell(work: Unit, command: Command, state: str, reason: str) -> None:
    """Put the step into the chat's log and tell those who watch."""
    if command.chat_id is not None:
        work.append(
            command.chat_id,
            lambda seq, name: ServerCommand(
                seq=seq,
                ts=work.now,
                chat=name,
                command=command.id,
                kind=command.kind,
                state=cast(CommandState, state),
                reason=reason[:4_000] or None,
                by=command.by_name or None,
            ),
        )
    changed(work, command, state)


def changed(work: Unit, command: Command, state: str) -> None:
    work.command_changes.append(CommandChange(command.id, command.agent_id, command.chat_id, state))


def current_unit() -> Unit:
    work = unit.current()
    assert work is not None, "services run inside a unit"
    return work
