"""What people add to incidents: notes, verdicts, who takes care of it, ranges to review.

Each checks the right, writes through the writer and leaves a line in the audit trail. Refusals
raise ``Refused``: no_right, server_read_only, no_incident, no_note, no_group, no_person, no_chat,
not_yours, bad (with the field).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.contrib.auth import get_user_model

from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import CauseGroup, Chat, Event, Incident, IncidentNote
from ctxhealth.store.models.incidents import AUTOMATIC, REVIEW
from ctxhealth.store.people import can_operate
from ctxhealth.store.queries.incidents import NoteRow, note_row
from ctxhealth.store.redaction import redact_text
from ctxhealth.store.through import call
from ctxhealth.store.writes.audit import audit, name_of
from ctxhealth.store.writes.commands import Refused

NOTE_CHARS = 20_000
VERDICT_CHARS = 2_000
VERDICTS = ("", "root_cause", "false_alarm")
R = TypeVar("R")


def note_add(*, incident_id: int, text: str, by: Any) -> NoteRow:
    """Add a note in Markdown, at most 20,000 characters."""
    return _given(call(_note_add, incident_id, text, by))


def note_edit(*, note_id: int, text: str, by: Any) -> NoteRow:
    """Change one's own note; the time of that is kept beside it."""
    return _given(call(_note_edit, note_id, text, by))


def note_delete(*, note_id: int, by: Any) -> None:
    """Delete one's own note."""
    _given(call(_note_delete, note_id, by))


def verdict_set(*, incident_id: int, verdict: str, text: str = "", by: Any) -> None:
    """The reviewer's word: ``root_cause`` with the text, ``false_alarm``, empty takes it back."""
    _given(call(_verdict_set, incident_id, verdict, text, by))


def incident_own(*, incident_id: int, owner: Any, by: Any) -> None:
    """Make ``owner`` (a user; None for nobody) the one who takes care of it."""
    _given(call(_own, Incident, incident_id, owner, by))


def group_own(*, group_id: int, owner: Any, by: Any) -> None:
    """The same for all incidents of one cause."""
    _given(call(_own, CauseGroup, group_id, owner, by))


def review_create(
    *,
    chat_id: int,
    by: Any,
    from_seq: int | None = None,
    to_seq: int | None = None,
    from_at: int | None = None,
    to_at: int | None = None,
    title: str = "",
) -> int:
    """Set a range of a chat aside to be reviewed; its id among the incidents.

    The range is given by ``chat_seq`` or by server ms, ends included; what is not given is the
    log's first or last event.
    """
    wanted = _Range(from_seq, to_seq, from_at, to_at)
    return _given(call(_review, chat_id, wanted, title, by))


class _Range(NamedTuple):
    from_seq: int | None
    to_seq: int | None
    from_at: int | None
    to_at: int | None


def _given(outcome: R | Refused) -> R:
    if isinstance(outcome, Refused):
        raise outcome
    return outcome


def _no_right(by: Any) -> Refused | None:
    if settings.CTXHEALTH_READ_ONLY:
        return Refused("server_read_only", "This server is read-only: nothing can be written.")
    if not can_operate(by):
        return Refused("no_right", "Only operators and admins may write here.")
    return None


def _bad_text(text: str, most: int) -> Refused | None:
    if not text.strip():
        return Refused("bad", "A text is needed.", "text")
    if len(text) > most:
        return Refused("bad", f"At most {most:,} characters, not {len(text):,}.", "text")
    if "\x00" in text:
        return Refused("bad", "The text contains NUL.", "text")
    return None


def _note_add(incident_id: int, text: str, by: Any) -> NoteRow | Refused:
    refusal = _no_right(by) or _bad_text(text, NOTE_CHARS)
    incident = Incident.objects.filter(id=incident_id).first()
    if incident is None:
        refusal = refusal or Refused("no_incident", f"There is no incident {incident_id}.")
    if refusal is not None or incident is None:
        return _refused("incident.note_add", f"incident {incident_id}", refusal, by)
    note = IncidentNote.objects.create(
        incident=incident, text=redact_text(text), by=by, by_name=name_of(by), at=now_ms()
    )
    _audit("incident.note_add", incident, by, f"note {note.pk}")
    return note_row(note)


def _note_edit(note_id: int, text: str, by: Any) -> NoteRow | Refused:
    note = IncidentNote.objects.select_related("incident").filter(id=note_id).first()
    refusal = _no_right(by) or _not_own(note, note_id, by) or _bad_text(text, NOTE_CHARS)
    if refusal is not None or note is None:
        return _refused("incident.note_edit", f"note {note_id}", refusal, by)
    note.text, note.edited_at = redact_text(text), now_ms()
    note.save(update_fields=["text", "edited_at"])
    _audit("incident.note_edit", note.incident, by, f"note {note_id}")
    return note_row(note)


def _note_delete(note_id: int, by: Any) -> Refused | None:
    note = IncidentNote.objects.select_related("incident").filter(id=note_id).first()
    refusal = _no_right(by) or _not_own(note, note_id, by)
    if refusal is not None or note is None:
        return _refused("incident.note_delete", f"note {note_id}", refusal, by)
    _audit("incident.note_delete", note.incident, by, f"note {note_id}")
    note.delete()
    return None


def _not_own(note: IncidentNote | None, note_id: int, by: Any) -> Refused | None:
    if note is None:
        return Refused("no_note", f"There is no note {note_id}.")
    if note.by_id is None or note.by_id != by.pk:
        return Refused("not_yours", f"This note is {note.by_name or 'somebody'}'s.")
    return None


def _verdict_set(incident_id: int, verdict: str, text: str, by: Any) -> Refused | None:
    refusal = _no_right(by) or _bad_verdict(verdict, text)
    incident = Incident.objects.filter(id=incident_id).first()
    if incident is None:
        refusal = refusal or Refused("no_incident", f"There is no incident {incident_id}.")
    if refusal is not None or incident is None:
        return _refused("incident.verdict", f"incident {incident_id}", refusal, by)
    incident.verdict, incident.verdict_text = verdict, redact_text(text.strip())
    incident.verdict_by = name_of(by) if verdict else ""
    incident.verdict_at = now_ms() if verdict else None
    incident.save(update_fields=["verdict", "verdict_text", "verdict_by", "verdict_at"])
    _audit("incident.verdict", incident, by, verdict or "taken back", text)
    return None


def _bad_verdict(verdict: str, text: str) -> Refused | None:
    if verdict not in VERDICTS:
        return Refused("bad", f"{verdict[:40]!r} is not a verdict.", "verdict")
    if verdict == "root_cause" or text.strip():
        return _bad_text(text, VERDICT_CHARS)
    return None


def _own(table: type[Incident | CauseGroup], pk: int, owner: Any, by: Any) -> Refused | None:
    what = "incident" if table is Incident else "cause_group"
    refusal = _no_right(by) or _bad_owner(owner)
    row: Any = table._default_manager.filter(id=pk).first()
    if row is None:
        missing = "no_incident" if table is Incident else "no_group"
        refusal = refusal or Refused(missing, f"There is no {what.replace('_', ' ')} {pk}.")
    if refusal is not None or row is None:
        return _refused(f"{what}.owner", f"{what} {pk}", refusal, by)
    row.owner, row.owner_name = owner, name_of(owner)
    row.owned_at = None if owner is None else now_ms()
    row.save(update_fields=["owner", "owner_name", "owned_at"])
    result = name_of(owner) or "nobody"
    if isinstance(row, Incident):
        _audit("incident.owner", row, by, result)
    else:
        audit(action="cause_group.owner", result=result, by=by, target=row.key)
    return None


def _bad_owner(owner: Any) -> Refused | None:
    if owner is None or (isinstance(owner, get_user_model()) and can_operate(owner)):
        return None
    return Refused("no_person", "The owner must be an operator or an admin.", "owner")


def _review(chat_id: int, wanted: _Range, title: str, by: Any) -> int | Refused:
    refusal = _no_right(by)
    if len(title) > 200 or "\x00" in title:
        refusal = refusal or Refused("bad", "At most 200 characters, without NUL.", "title")
    chat = Chat.objects.filter(id=chat_id).first()
    if chat is None:
        refusal = refusal or Refused("no_chat", f"There is no chat {chat_id}.")
    ends = None if refusal is not None or chat is None else _ends(chat, wanted)
    if isinstance(ends, Refused):
        refusal = ends
    if refusal is not None or chat is None or ends is None or isinstance(ends, Refused):
        return _refused("incident.review", f"chat {chat_id}", refusal, by)
    (first_seq, first_at), (last_seq, last_at) = ends
    row = Incident.objects.create(
        project_id=chat.project_id,
        chat=chat,
        agent_id=chat.agent_id,
        kind=REVIEW,
        opened_seq=first_seq,
        opened_at=first_at,
        started_seq=first_seq,
        started_at=first_at,
        closed_seq=last_seq,
        closed_at=last_at,
        sentence=redact_text(title.strip()),
        created_by=name_of(by),
    )
    _audit("incident.review", row, by, f"{first_seq} to {last_seq}")
    return row.pk


def _ends(chat: Chat, wanted: _Range) -> tuple[tuple[int, int], tuple[int, int]] | Refused:
    """(chat_seq, at) of the first and the last event of the range."""
    from_seq, to_seq, from_at, to_at = wanted
    events = Event.objects.filter(chat=chat)
    for name, low, high in (("chat_seq", from_seq, to_seq), ("at", from_at, to_at)):
        if low is not None and high is not None and low > high:
            field = "to_seq" if name == "chat_seq" else "to_at"
            return Refused("bad", f"The end {high} lies before the beginning {low}.", field)
        if low is not None:
            events = events.filter(**{f"{name}__gte": low})
        if high is not None:
            events = events.filter(**{f"{name}__lte": high})
    ordered = events.order_by("chat_seq").values_list("chat_seq", "at")
    first, last = ordered.first(), ordered.last()
    if first is None or last is None or first[0] is None or last[0] is None:
        return Refused("bad", "There is no event of this chat in that range.", "from_seq")
    return (first[0], first[1]), (last[0], last[1])


def _refused(action: str, target: str, refusal: Refused | None, by: Any) -> Refused:
    refusal = refusal or Refused("bad", "Refused.")
    audit(action=action, result=f"refused: {refusal.reason}", by=by, target=target)
    return refusal


def _audit(action: str, incident: Incident, by: Any, result: str, reason: str = "") -> None:
    kind = "incident" if incident.kind == AUTOMATIC else "review"
    audit(
        action=action,
        result=result,
        by=by,
        target=f"{kind} {incident.pk}",
        chat=incident.chat_id,
        reason=reason,
    )
