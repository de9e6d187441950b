"""An incident or a review as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from django.db.models import Q

from ctxhealth.core.state import FOLD_VERSION
from ctxhealth.store import incarnation
from ctxhealth.store.bundles.form import (
    FORMAT,
    MOST_AUDIT,
    MOST_BYTES,
    MOST_COMMANDS,
    MOST_EVENTS,
    MOST_NOTES,
    VERSION,
    Bundle,
    BundleAudit,
    BundleChat,
    BundleCommand,
    BundleEvent,
    BundleIncident,
    BundleNote,
    Origin,
)
from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import (
    AuditEntry,
    Chat,
    Command,
    Event,
    ImportedBundle,
    Incident,
    IncidentNote,
)
from ctxhealth.store.queries.incidents import PINNED_EVENTS

_COLUMNS = ("chat_seq", "type", "ts", "received", "at", "body", "stream_id", "tombstone")


class TooLarge(ValueError):
    """The log up to the incident's end is larger than a bundle may be."""


def bundle_of(incident_id: int, *, by: str = "") -> bytes | None:
    """The bundle of an incident; None where there is none. ``by`` is named in it.

    Raises TooLarge.
    """
    incident = Incident.objects.select_related("chat", "agent").filter(id=incident_id).first()
    if incident is None:
        return None
    before = ImportedBundle.objects.filter(chat_id=incident.chat_id).first()
    last = _last_event(incident, before)
    data = msgspec.json.encode(
        Bundle(
            format=FORMAT,
            version=VERSION,
            exported_at=now_ms(),
            exported_by=by[:200],
            origin=_origin(incident.chat, before),
            chat=_chat(incident, before),
            incident=_incident(incident, last),
            events=list(_events(incident.chat_id, last, before)),
            commands=[_command(row) for row in _commands(incident)],
            notes=[_note(row) for row in _notes(incident)],
            audit=[*(before.audit_of(incident.pk) if before else ()), *_audit(incident)][
                :MOST_AUDIT
            ],
        )
    )
    if len(data) > MOST_BYTES:
        raise TooLarge(f"The log has {len(data):,} bytes; a bundle holds {MOST_BYTES:,}.")
    return data


def _origin(chat: Chat, before: ImportedBundle | None) -> Origin:
    """Of a chat that came in a bundle, where it was first."""
    if before is not None:
        return Origin(incarnation=before.origin, chat=before.origin_chat, core_version=FOLD_VERSION)
    return Origin(incarnation=incarnation.current(), chat=chat.pk, core_version=FOLD_VERSION)


def _chat(incident: Incident, before: ImportedBundle | None) -> BundleChat:
    caps = msgspec.json.decode(incident.agent.caps)
    return BundleChat(
        agent=before.origin_agent if before else incident.agent.name[:160],
        runtime=incident.agent.runtime,
        external_id=incident.chat.external_id,
        opened_at=incident.chat.opened_at,
        text=str(caps.get("text", ""))[:200],
    )


def _last_event(incident: Incident, before: ImportedBundle | None) -> int:
    """With room after the end, where it ended; of an imported chat no event of this server."""
    head = before.head if before else incident.chat.chat_seq
    if incident.closed_seq is None:
        return head
    return min(head, incident.closed_seq + PINNED_EVENTS)


def _events(chat: int, last: int, before: ImportedBundle | None) -> Iterator[BundleEvent]:
    rows = Event.objects.filter(chat_id=chat, chat_seq__lte=last).order_by("chat_seq")
    count = rows.count()
    if count > MOST_EVENTS:
        raise TooLarge(f"The log has {count:,} events; a bundle holds {MOST_EVENTS:,}.")
    for expected, row in enumerate(rows.values_list(*_COLUMNS).iterator(2_000), start=1):
        seq, kind, ts, received, at, body, stream, tombstone = row
        if seq != expected:
            raise TooLarge("The log's beginning was deleted by retention: nothing can be folded.")
        yield BundleEvent(seq, kind, ts, received, at, body, stream is None, tombstone)


def _incident(row: Incident, last: int) -> BundleIncident:
    return BundleIncident(
        kind=row.kind,
        opened_seq=row.opened_seq,
        opened_at=row.opened_at,
        started_seq=row.started_seq,
        started_at=row.started_at,
        closed_seq=None if row.closed_seq is None else min(row.closed_seq, last),
        closed_at=row.closed_at,
        root=row.root,
        state=row.state,
        severity=row.severity,
        sentence=row.sentence,
        judged=row.judged,
        owner=row.owner_name,
        owned_at=row.owned_at,
        verdict=row.verdict,
        verdict_text=row.verdict_text,
        verdict_by=row.verdict_by,
        verdict_at=row.verdict_at,
        created_by=row.created_by,
    )


def _commands(incident: Incident) -> list[Command]:
    return list(Command.objects.filter(chat=incident.chat).order_by("created_at")[:MOST_COMMANDS])


def _command(row: Command) -> BundleCommand:
    return BundleCommand(
        id=row.id,
        kind=row.kind,
        args=row.args,
        mutating=row.mutating,
        reason=row.reason,
        by=row.by_name,
        state=row.state,
        state_reason=row.state_reason,
        created_at=row.created_at,
        deliver_by=row.deliver_by,
        lease_s=row.lease_s,
        sent_at=row.sent_at,
        received_at=row.received_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        before=row.before,
        after=row.after,
        backup=row.backup,
        detail=row.detail,
    )


def _notes(incident: Incident) -> list[IncidentNote]:
    return list(IncidentNote.objects.filter(incident=incident).order_by("id")[:MOST_NOTES])


def _note(row: IncidentNote) -> BundleNote:
    return BundleNote(text=row.text, by=row.by_name, at=row.at, edited_at=row.edited_at)


def _audit(incident: Incident) -> list[BundleAudit]:
    """The lines about it, oldest first: what was said of it at any time, and what was done to
    its chat while it lasted."""
    during = Q(at__gte=incident.started_at)
    if incident.closed_at is not None:
        during &= Q(at__lte=incident.closed_at)
    own = Q(target__in=(f"incident {incident.pk}", f"review {incident.pk}"))
    others = Q(action__startswith="incident.") | Q(action__startswith="export.")
    rows = AuditEntry.objects.filter(own | (during & ~others), chat=incident.chat)
    return [
        BundleAudit(
            at=row.at,
            by=row.by_name,
            action=row.action,
            target="",
            reason=row.reason,
            result=row.result,
            command=row.command_id or "",
        )
        for row in rows.exclude(action="bundle.import").order_by("id")[:MOST_AUDIT]
    ]
