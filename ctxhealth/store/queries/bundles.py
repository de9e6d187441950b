"""Where a chat came from that came in a bundle."""

from __future__ import annotations

from dataclasses import dataclass

from ctxhealth.store.models import ImportedBundle
from ctxhealth.store.queries.audit import AuditRow


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleRow:
    """``head`` is the last event that came with it, ``origin`` the database it was made in."""

    chat: int
    head: int
    origin: str
    agent: str
    exported_at: int
    exported_by: str
    imported_at: int
    by: str


def bundle_of_chat(chat_id: int) -> BundleRow | None:
    """None for a chat that is of this server."""
    row = ImportedBundle.objects.filter(chat_id=chat_id).first()
    if row is None:
        return None
    return BundleRow(
        chat=chat_id,
        head=row.head,
        origin=row.origin,
        agent=row.origin_agent,
        exported_at=row.exported_at,
        exported_by=row.exported_by,
        imported_at=row.imported_at,
        by=row.by_name,
    )


def bundle_trail(chat_id: int, incident_id: int) -> list[AuditRow]:
    """The lines of the other server's trail that came with an incident, oldest first."""
    row = ImportedBundle.objects.filter(chat_id=chat_id).first()
    return [
        AuditRow(
            id=0,
            at=line.at,
            by=line.by,
            action=line.action,
            target=line.target,
            chat=chat_id,
            command=line.command or None,
            reason=line.reason,
            result=line.result,
            detail={},
            ip="",
            request_id="",
        )
        for line in (row.audit_of(incident_id) if row else ())
    ]
