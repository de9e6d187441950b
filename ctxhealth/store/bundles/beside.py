"""What a bundle brings beside its log: the incident, notes, the verdict and commands."""

from __future__ import annotations

import msgspec

from ctxhealth.store.bundles.form import Bundle, BundleCommand, BundleIncident, BundleNote
from ctxhealth.store.clock import now_ms
from ctxhealth.store.ids import uuid7
from ctxhealth.store.models import Chat, Command, ImportedBundle, Incident, IncidentNote
from ctxhealth.store.models.actions import FINAL_STATES
from ctxhealth.store.models.incidents import AUTOMATIC, REVIEW
from ctxhealth.store.redaction import redact_text

LEFT_OPEN = "It was still open when the bundle was made."


def incident_row(chat: int, told: BundleIncident) -> Incident | None:
    """The row that stands for the bundle's incident."""
    rows = Incident.objects.filter(chat_id=chat, kind=told.kind, opened_seq=told.opened_seq)
    if told.kind == REVIEW:
        rows = rows.filter(closed_seq=told.closed_seq, created_by=told.created_by)
    return rows.first()


def incident(bundle: Bundle, chat_id: int) -> Incident:
    """The incident as the fold made it here, with what was judged and decided there."""
    told, chat = bundle.incident, Chat.objects.get(id=chat_id)
    row = incident_row(chat_id, told) or _made(chat, told)
    if told.judged and row.kind == AUTOMATIC:
        row.judged = told.judged
    if told.verdict_at is not None and told.verdict_at > (row.verdict_at or -1):
        row.verdict, row.verdict_text = told.verdict, redact_text(told.verdict_text)
        row.verdict_by, row.verdict_at = told.verdict_by, told.verdict_at
    if told.owner and not row.owner_name:
        row.owner_name, row.owned_at = told.owner, told.owned_at
    row.save()
    return row


def _made(chat: Chat, told: BundleIncident) -> Incident:
    """A review, or an incident that this version of the core does not see."""
    return Incident(
        project_id=chat.project_id,
        chat=chat,
        agent_id=chat.agent_id,
        kind=told.kind,
        opened_seq=told.opened_seq,
        opened_at=told.opened_at,
        started_seq=told.started_seq,
        started_at=told.started_at,
        closed_seq=told.closed_seq or told.opened_seq,
        closed_at=told.closed_at or told.opened_at,
        root=told.root,
        state=told.state,
        severity=told.severity,
        sentence=redact_text(told.sentence),
        created_by=told.created_by,
    )


def notes(bundle: Bundle, row: Incident) -> int:
    """Add the notes that are not there yet; how many."""
    added = 0
    for note in bundle.notes:
        known = IncidentNote.objects.filter(incident=row, at=note.at, by_name=note.by).first()
        if known is None:
            _note(row, note)
            added += 1
        elif (note.edited_at or 0) > (known.edited_at or 0):
            known.text, known.edited_at = redact_text(note.text), note.edited_at
            known.save(update_fields=["text", "edited_at"])
            added += 1
    return added


def _note(row: Incident, note: BundleNote) -> None:
    IncidentNote.objects.create(
        incident=row,
        text=redact_text(note.text),
        by_name=note.by,
        at=note.at,
        edited_at=note.edited_at,
    )


def trail(bundle: Bundle, came: ImportedBundle, row: Incident) -> None:
    """Keep the trail's lines beside this server's own; a later bundle knows more of them."""
    lines = came.audit_lines()
    known = lines.get(str(row.pk), [])
    if len(bundle.audit) >= len(known):
        lines[str(row.pk)] = bundle.audit
        came.audit = msgspec.json.encode(lines).decode()
        came.save(update_fields=["audit"])


def commands(bundle: Bundle, chat_id: int) -> None:
    """Commands as they ended there; none of them is open here, whatever it was."""
    chat = Chat.objects.get(id=chat_id)
    for told in bundle.commands:
        key = f"bundle {told.id}"
        if not Command.objects.filter(agent_id=chat.agent_id, idempotency_key=key).exists():
            _command(chat, told, key)


def _command(chat: Chat, told: BundleCommand, key: str) -> None:
    ended = told.state in FINAL_STATES
    taken = Command.objects.filter(id=told.id).exists()
    Command.objects.create(
        id=uuid7(now_ms()) if taken else told.id,
        project_id=chat.project_id,
        agent_id=chat.agent_id,
        chat=chat,
        kind=told.kind,
        args=told.args if told.args.startswith("{") else "{}",
        mutating=told.mutating,
        idempotency_key=key,
        reason=redact_text(told.reason),
        by_name=told.by,
        state=told.state if ended else "unknown",
        state_reason=redact_text(told.state_reason) if ended else LEFT_OPEN,
        open=False,
        created_at=told.created_at,
        deliver_by=told.deliver_by,
        lease_s=told.lease_s,
        sent_at=told.sent_at,
        received_at=told.received_at,
        started_at=told.started_at,
        ended_at=told.ended_at,
        before=told.before,
        after=told.after,
        backup=told.backup,
        detail=told.detail,
    )
