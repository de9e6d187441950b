"""The audit trail: one row for every action, also for those that were refused."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import AuditEntry
from ctxhealth.store.redaction import redact_text
from ctxhealth.store.through import call


def audit(
    *,
    action: str,
    result: str,
    by: Any = None,
    target: str = "",
    chat: int | None = None,
    command: str | None = None,
    reason: str = "",
    detail: dict[str, Any] | None = None,
    ip: str = "",
    request_id: str = "",
) -> None:
    """Record who did what. ``by`` None is the server, or nobody who was signed in."""
    call(
        _audit,
        action=action,
        result=result,
        by=by,
        target=target,
        chat=chat,
        command=command,
        reason=reason,
        detail=detail,
        ip=ip,
        request_id=request_id,
    )


def _audit(
    *,
    action: str,
    result: str,
    by: Any,
    target: str,
    chat: int | None,
    command: str | None,
    reason: str,
    detail: dict[str, Any] | None,
    ip: str,
    request_id: str,
) -> None:
    known = by if getattr(by, "pk", None) is not None else None
    AuditEntry.objects.create(
        at=now_ms(),
        by=known,
        by_name=name_of(by),
        action=action[:60],
        target=redact_text(target)[:300],
        chat_id=chat,
        command_id=command,
        reason=redact_text(reason)[:4_000],
        result=result[:60],
        detail=msgspec.json.encode(detail).decode() if detail else "",
        ip=ip[:60],
        request_id=request_id[:60],
    )


def name_of(by: Any) -> str:
    """How a person is called in receipts and in the audit trail."""
    if by is None:
        return ""
    return by[:200] if isinstance(by, str) else str(by.get_username())[:200]
