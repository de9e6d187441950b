"""What people on call write: the hand-over note, and silences that expire by themselves."""

from __future__ import annotations

from typing import Any, TypeVar

from django.conf import settings

from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import CauseGroup, HandoverNote, Silence
from ctxhealth.store.people import can_operate
from ctxhealth.store.projects import default_project
from ctxhealth.store.through import call
from ctxhealth.store.writes.audit import audit, name_of
from ctxhealth.store.writes.commands import Refused

R = TypeVar("R")
NOTE_CHARS = 20_000
REASON_CHARS = 500
# Nobody goes on being silent by forgetting: a longer absence is a threshold or a repair.
MOST_MINUTES = 24 * 60
MINUTE_MS = 60_000


def handover_save(*, text: str, seen: int | None = None, by: Any) -> int:
    """Keep a new version of the hand-over note; its id. ``seen`` is the version it was made from.

    Raises Refused: no_right, server_read_only, bad, changed (somebody saved meanwhile).
    """
    return _given(call(_save, text, seen, by))


def silence_set(*, group_id: int, minutes: int, reason: str, by: Any) -> int:
    """Count a cause's chats no more for so long; its id. One that stands already ends.

    Raises Refused: no_right, server_read_only, no_group, bad.
    """
    return _given(call(_silence, group_id, minutes, reason.strip(), by))


def silence_end(*, silence_id: int, by: Any) -> None:
    """Count them again at once. Raises Refused: no_right, server_read_only, no_silence."""
    _given(call(_end, silence_id, by))


def _given(outcome: R | Refused) -> R:
    """A refusal is raised only here: its line in the audit trail is committed."""
    if isinstance(outcome, Refused):
        raise outcome
    return outcome


def _save(text: str, seen: int | None, by: Any) -> int | Refused:
    refusal = _no_right(by) or _bad_text("text", text, NOTE_CHARS)
    newest = HandoverNote.objects.order_by("-id").first()
    if refusal is None and newest is not None and seen is not None and newest.pk != seen:
        refusal = Refused("changed", f"{newest.by_name} saved the note meanwhile: look at it, "
                          "then save yours again.", "text")  # fmt: skip
    if refusal is not None:
        return _refused("oncall.note", "hand-over note", refusal, by)
    made = HandoverNote.objects.create(
        project=default_project(), text=text, by=_known(by), by_name=name_of(by), at=now_ms()
    )
    audit(action="oncall.note", result="done", by=by, target="hand-over note",
          detail={"note": made.pk, "characters": len(text)})  # fmt: skip
    return made.pk


def _silence(group_id: int, minutes: int, reason: str, by: Any) -> int | Refused:
    refusal = _no_right(by) or _bad_text("reason", reason, REASON_CHARS)
    if refusal is None and not 1 <= minutes <= MOST_MINUTES:
        refusal = Refused("bad", f"1 to {MOST_MINUTES:,} minutes, not {minutes:,}.", "minutes")
    group = CauseGroup.objects.filter(id=group_id, closed_at=None).first()
    if refusal is None and group is None:
        refusal = Refused("no_group", "Nothing is in trouble for this cause any more.")
    if refusal is not None or group is None:
        return _refused("silence.set", f"cause_group {group_id}", refusal, by, reason)
    now = now_ms()
    Silence.objects.filter(group=group, ended_at=None, until__gt=now).update(
        ended_at=now, ended_by=name_of(by)
    )
    made = Silence.objects.create(
        group=group, until=now + minutes * MINUTE_MS, reason=reason, by=_known(by),
        by_name=name_of(by), at=now,
    )  # fmt: skip
    audit(action="silence.set", result="done", by=by, target=group.key, reason=reason,
          detail={"silence": made.pk, "minutes": minutes, "until": made.until})  # fmt: skip
    return made.pk


def _end(silence_id: int, by: Any) -> int | Refused:
    refusal = _no_right(by)
    now = now_ms()
    found = Silence.objects.select_related("group").filter(id=silence_id).first()
    if refusal is None and (found is None or found.ended_at is not None or found.until <= now):
        refusal = Refused("no_silence", "This silence is over already.")
    if refusal is not None or found is None:
        return _refused("silence.end", f"silence {silence_id}", refusal, by)
    found.ended_at, found.ended_by = now, name_of(by)
    found.save(update_fields=["ended_at", "ended_by"])
    audit(action="silence.end", result="done", by=by, target=found.group.key)
    return found.pk


def _no_right(by: Any) -> Refused | None:
    if settings.CTXHEALTH_READ_ONLY:
        return Refused("server_read_only", "This server is read-only: nothing can be written.")
    if not can_operate(by):
        return Refused("no_right", "Only operators and admins may write here.")
    return None


def _bad_text(field: str, text: str, most: int) -> Refused | None:
    if not text.strip():
        return Refused("bad", f"A {'reason' if field == 'reason' else 'text'} is needed.", field)
    if len(text) > most:
        return Refused("bad", f"At most {most:,} characters, not {len(text):,}.", field)
    if "\x00" in text:
        return Refused("bad", "It contains NUL.", field)
    return None


def _refused(
    action: str, target: str, refusal: Refused | None, by: Any, reason: str = ""
) -> Refused:
    assert refusal is not None
    # What was refused for its NUL must not fail for it in the trail.
    said = reason.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    audit(action=action, result=f"refused: {refusal.reason}", by=by, target=target, reason=said)
    return refusal


def _known(by: Any) -> Any:
    return by if getattr(by, "pk", None) is not None else None
