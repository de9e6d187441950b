"""Commands with their receipts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from django.db.models import Q

from ctxhealth.store.models import Command


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandRow:
    """One command as it stands. ``detail`` is what the agent reported, decoded."""

    id: str
    chat: int | None
    chat_external: str | None
    agent_id: int
    agent: str
    kind: str
    args: dict[str, Any]
    state: str
    state_reason: str
    open: bool
    mutating: bool
    reason: str
    by: str
    created_at: int
    deliver_by: int
    lease_s: int
    lease_until: int | None
    sent_at: int | None
    received_at: int | None
    started_at: int | None
    ended_at: int | None
    cancel_asked_at: int | None
    before: int | None
    after: int | None
    backup: str
    detail: Any
    expected_epoch: str
    expected_compaction: int | None
    expected_latch: str


def command_get(command_id: str) -> CommandRow | None:
    row = Command.objects.select_related("agent", "chat").filter(id=command_id).first()
    return command_row(row) if row else None


def chat_commands(chat_id: int, limit: int = 100) -> list[CommandRow]:
    """A chat's commands, newest first."""
    rows = Command.objects.select_related("agent", "chat").filter(chat_id=chat_id)
    return [command_row(row) for row in rows.order_by("-created_at", "-id")[:limit]]


def command_open(chat_id: int) -> CommandRow | None:
    """The one open mutating command of a chat, if there is one."""
    rows = Command.objects.select_related("agent", "chat")
    row = rows.filter(chat_id=chat_id, open=True, mutating=True).first()
    return command_row(row) if row else None


def commands_cancelling(agent: int, conn_no: int) -> list[str]:
    """Ids of open commands of this agent that somebody wants cancelled."""
    rows = Command.objects.filter(agent_id=agent, agent__conn_no=conn_no, open=True)
    return list(rows.exclude(cancel_asked_at=None).values_list("id", flat=True))


def commands_due(now: int) -> bool:
    """Whether any command must be ended because its time is over."""
    undelivered = Q(state__in=("queued", "sent"), deliver_by__lte=now)
    overdue = Q(state__in=("received", "waiting", "started"), lease_until__lte=now)
    return Command.objects.filter(undelivered | overdue, open=True).exists()


def command_row(row: Command) -> CommandRow:
    return CommandRow(
        id=row.id,
        chat=row.chat_id,
        chat_external=row.chat.external_id if row.chat else None,
        agent_id=row.agent_id,
        agent=row.agent.name,
        kind=row.kind,
        args=msgspec.json.decode(row.args),
        state=row.state,
        state_reason=row.state_reason,
        open=row.open,
        mutating=row.mutating,
        reason=row.reason,
        by=row.by_name,
        created_at=row.created_at,
        deliver_by=row.deliver_by,
        lease_s=row.lease_s,
        lease_until=row.lease_until,
        sent_at=row.sent_at,
        received_at=row.received_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        cancel_asked_at=row.cancel_asked_at,
        before=row.before,
        after=row.after,
        backup=row.backup,
        detail=msgspec.json.decode(row.detail) if row.detail else None,
        expected_epoch=row.expected_epoch,
        expected_compaction=row.expected_compaction,
        expected_latch=row.expected_latch,
    )
