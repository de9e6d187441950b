"""The audit trail, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ctxhealth.store.models import AuditEntry


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRow:
    """``result`` is what was recorded; ``command_state`` is where its command stands now."""

    id: int
    at: int
    by: str
    action: str
    target: str
    chat: int | None
    command: str | None
    reason: str
    result: str
    detail: dict[str, Any]
    ip: str
    request_id: str
    command_state: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditPage:
    rows: list[AuditRow]
    next: int | None


def audit_page(
    before: int | None = None, limit: int = 100, chat: int | None = None, action: str = ""
) -> AuditPage:
    """Entries with an id below ``before``; ``next`` is the ``before`` of the next page."""
    entries = AuditEntry.objects.select_related("command").order_by("-id")
    if before is not None:
        entries = entries.filter(id__lt=before)
    if chat is not None:
        entries = entries.filter(chat_id=chat)
    if action:
        entries = entries.filter(action=action)
    found = list(entries[: limit + 1])
    return AuditPage(
        rows=[_row(entry) for entry in found[:limit]],
        next=found[limit - 1].pk if len(found) > limit else None,
    )


def _row(entry: AuditEntry) -> AuditRow:
    return AuditRow(
        id=entry.pk,
        at=entry.at,
        by=entry.by_name,
        action=entry.action,
        target=entry.target,
        chat=entry.chat_id,
        command=entry.command_id,
        command_state=entry.command.state if entry.command else None,
        reason=entry.reason,
        result=entry.result,
        detail=msgspec.json.decode(entry.detail) if entry.detail else {},
        ip=entry.ip,
        request_id=entry.request_id,
    )
