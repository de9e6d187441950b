"""Incidents of the fold -> rows, and the groups that their causes form.

A group's times are those of its incidents, so that a rebuild from the logs gives the same ones;
only whether somebody was alerted is a matter of when it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.db import connection
from django.db.models import Max, Min, Q

from ctxhealth.core.changes import Changes
from ctxhealth.core.incidents_model import Cause, IncidentView
from ctxhealth.core.presence import FOLLOWED_MS
from ctxhealth.store.clock import now_ms
from ctxhealth.store.event_rows import chunks
from ctxhealth.store.models import CauseGroup, Incident
from ctxhealth.store.models.incidents import AUTOMATIC
from ctxhealth.store.states import Held

# The same cause so soon after its group closed opens that group again, without a second alert.
SOON_MS = 10 * 60_000
_ENCODER = msgspec.json.Encoder()
_VIEW: msgspec.json.Decoder[IncidentView] = msgspec.json.Decoder(IncidentView)


def decode_view(text: str) -> IncidentView | None:
    """A stored view; None where the present rules see no incident, or for a review."""
    return _VIEW.decode(text) if text else None


def write(touched: Iterable[tuple[Held, Changes]]) -> None:
    """Write the incidents that the fold of one batch changed."""
    told = [
        (held, naming_agent(view, held.agent_name))
        for held, changes in touched
        if changes.incidents_closed or changes.incident_touched
        for view in changes.incidents.values()
    ]
    if not told:
        return
    known = _going_on([held.pk for held, _ in told])
    plain: list[tuple[Any, ...]] = []
    for held, view in told:
        row = known.get((held.pk, view.opened_seq))
        if row is not None and row[1] == view.cause.key and view.closed_seq is None:
            plain.append((*_values(view), row[0]))
        else:
            save(held, view, _row_of(held, view))
    _update(plain)


def _going_on(chats: list[int]) -> dict[tuple[int, int], tuple[int, str | None]]:
    """Open incidents by chat and opening: their row's id and their group's key."""
    rows = Incident.objects.filter(kind=AUTOMATIC, closed_at=None).order_by()
    columns = ("chat_id", "opened_seq", "id", "group__key")
    found: dict[tuple[int, int], tuple[int, str | None]] = {}
    for some in chunks(chats):
        for chat, seq, pk, key in rows.filter(chat_id__in=some).values_list(*columns):
            found[chat, seq] = (pk, key)
    return found


def _row_of(held: Held, view: IncidentView) -> Incident | None:
    rows = Incident.objects.select_related("group").filter(chat_id=held.pk, kind=AUTOMATIC)
    return rows.filter(opened_seq=view.opened_seq).first()


def _update(rows: list[tuple[Any, ...]]) -> None:
    """Open incidents of which only the story went on: most of what is written."""
    if rows:
        wanted = ", ".join(f"{name} = %s" for name in _COLUMNS)
        with connection.cursor() as cursor:
            cursor.executemany(f"UPDATE store_incident SET {wanted} WHERE id = %s", rows)


def save(held: Held, view: IncidentView, row: Incident | None) -> None:
    """Write one incident, into ``row`` where it is known already, and settle its group."""
    if row is None:
        row = Incident(project_id=held.project, chat_id=held.pk, agent_id=held.agent)
    for name, value in zip(_COLUMNS, _values(view), strict=True):
        setattr(row, name, value)
    if view.closed_seq is not None and not row.judged:
        row.judged = row.view
    left, group = row.group, _group_of(row, view)
    joined = group.pk != row.group_id
    row.group = group
    row.save()
    if left is not None and joined:
        _leave_group(left)
    if joined or view.closed_seq is not None or group.closed_at is not None:
        settle_group(group)


def naming_agent(view: IncidentView, agent: str) -> IncidentView:
    """The view with the agent named where the cause does not reach beyond it."""
    if view.cause.reaches_beyond_an_agent:
        return view
    cause = msgspec.structs.replace(view.cause, agent=agent)
    return msgspec.structs.replace(view, cause=cause)


def settle_group(group: CauseGroup) -> None:
    """Open while an incident of it is; its times and its count from its incidents."""
    for name, value in group_facts(group).items():
        setattr(group, name, value)
    group.save(update_fields=["opened_at", "closed_at", "count"])


def group_facts(group: CauseGroup) -> dict[str, int | None]:
    """What a group's incidents say of it: opened_at, closed_at, count."""
    rows = Incident.objects.filter(group=group)
    found = rows.aggregate(first=Min("opened_at"), last=Max("closed_at"))
    open_ = rows.filter(closed_at=None).exists()
    return {
        "opened_at": group.opened_at if found["first"] is None else found["first"],
        "closed_at": None if open_ else found["last"] or group.opened_at,
        "count": rows.count(),
    }


def reconcile(held: Held, found: Mapping[int, IncidentView]) -> None:
    """Make a chat's rows those of a rebuild, keeping notes, verdicts and what was judged.

    A row that the present rules place elsewhere moves; one that they do not see any more stays
    with an empty view.
    """
    rows = list(Incident.objects.filter(chat_id=held.pk, kind=AUTOMATIC))
    left = {row.opened_seq: row for row in rows}
    matched = {seq: left.pop(seq) for seq in found if seq in left}
    for seq, view in found.items():
        if seq not in matched:
            row = next((row for row in left.values() if _overlaps(row, view)), None)
            if row is not None:
                matched[seq] = left.pop(row.opened_seq)
    for row in left.values():
        _leave(row)
    for seq, view in found.items():
        save(held, naming_agent(view, held.agent_name), matched.get(seq))


def _leave(row: Incident) -> None:
    """By the present rules it was none: what was judged then stays to be read."""
    group = row.group
    row.judged = row.judged or row.view
    row.view = ""
    row.group = None
    if row.closed_at is None:
        row.closed_at, row.closed_seq = now_ms(), row.opened_seq
    row.save()
    if group is not None:
        _leave_group(group)


def _leave_group(group: CauseGroup) -> None:
    """One incident went: a group that has none is none."""
    if Incident.objects.filter(group=group).exists():
        settle_group(group)
    else:
        group.delete()


def _overlaps(row: Incident, view: IncidentView) -> bool:
    ends = row.closed_seq is None or row.closed_seq >= view.started_seq
    return ends and (view.closed_seq is None or view.closed_seq >= row.started_seq)


_COLUMNS = (
    "opened_seq", "opened_at", "started_seq", "started_at", "closed_seq", "closed_at", "root",
    "state", "severity", "sentence", "view",
)  # fmt: skip


def _values(view: IncidentView) -> tuple[Any, ...]:
    """A row's values in the order of ``_COLUMNS``."""
    return (
        view.opened_seq,
        view.opened_at,
        view.started_seq,
        view.started_at,
        view.closed_seq,
        view.closed_at,
        view.root[:60],
        view.worst_state.value,
        view.worst_severity.value,
        view.sentence,
        _ENCODER.encode(view).decode(),
    )


def _group_of(row: Incident, view: IncidentView) -> CauseGroup:
    """The group of the same cause at that time: its own one, one that is open or just closed."""
    key = view.cause.key
    if row.group is not None and row.group.key == key:
        return row.group
    known = CauseGroup.objects.filter(project_id=row.project_id, key=key)
    known = known.filter(opened_at__lte=view.opened_at + SOON_MS)
    known = known.filter(Q(closed_at=None) | Q(closed_at__gte=view.opened_at - SOON_MS))
    group = known.order_by("-opened_at", "-id").first()
    fresh = view.closed_at is None and now_ms() - view.opened_at < FOLLOWED_MS
    if group is None:
        moved = _renamed(row, view.cause)
        if moved is not None:
            return moved
        return CauseGroup.objects.create(
            project_id=row.project_id,
            key=key,
            cause=encode_cause(view.cause),
            opened_at=view.opened_at,
            alerted_at=row.group.alerted_at if row.group else now_ms() if fresh else None,
        )
    if fresh and group.alerted_at is None:
        group.alerted_at = now_ms()
        group.save(update_fields=["alerted_at"])
    return group


def _renamed(row: Incident, cause: Cause) -> CauseGroup | None:
    """The incident's own group under the cause that has shown itself, where nobody shares it."""
    group = row.group
    if group is None or Incident.objects.filter(group=group).exclude(pk=row.pk).exists():
        return None
    group.key, group.cause = cause.key, encode_cause(cause)
    group.save(update_fields=["key", "cause"])
    return group


def encode_cause(cause: Cause) -> str:
    return _ENCODER.encode(cause).decode()
