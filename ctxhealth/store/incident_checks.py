"""Whether stored incidents and cause groups are those that the logs give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ctxhealth.core.incidents_model import IncidentView
from ctxhealth.store.incident_rows import decode_view, group_facts, settle_group
from ctxhealth.store.models import CauseGroup, Incident
from ctxhealth.store.models.incidents import AUTOMATIC

CHUNK = 200
SHOWN = 3
TRIES = 3
# Of an open incident these go on with every event; its row follows when something else changes.
COUNTS = ("empties", "requests", "turns", "lost_links")
_COLUMNS = ("opened_at", "started_seq", "started_at", "closed_seq", "closed_at", "root")


def incident_problems(chat: int, expected: Mapping[int, IncidentView]) -> Iterator[str]:
    """How one chat's rows differ from the views of its fold."""
    rows = Incident.objects.select_related("group").filter(chat_id=chat, kind=AUTOMATIC)
    stored = {row.opened_seq: row for row in rows.exclude(view="")}
    missing = [seq for seq in expected if seq not in stored]
    extra = [seq for seq in stored if seq not in expected]
    if missing:
        yield f"{len(missing)} incidents are missing: {missing[:SHOWN]}"
    if extra:
        yield f"{len(extra)} incidents are not in the log: {extra[:SHOWN]}"
    for seq, view in expected.items():
        if seq in stored:
            yield from _differences(stored[seq], view)


def _differences(row: Incident, view: IncidentView) -> Iterator[str]:
    where = f"incident at {row.opened_seq}"
    kept = decode_view(row.view)
    if kept is None:
        return
    cause = msgspec.structs.replace(kept.cause, agent=None)
    plain = msgspec.structs.replace(kept, cause=cause)
    skipped = () if view.closed_seq is not None else COUNTS
    for name in IncidentView.__struct_fields__:
        if name in skipped:
            continue
        stored, folded = getattr(plain, name), getattr(view, name)
        if stored != folded:
            yield f"{where}: {name} is {stored!r}, the fold gives {folded!r}"[:300]
    for name in _COLUMNS:
        if getattr(row, name) != getattr(kept, name):
            yield f"{where}: column {name} is {getattr(row, name)!r}"
    if row.group is None or row.group.key != kept.cause.key:
        yield f"{where}: its group is not the one of its cause {kept.cause.key!r}"


def group_problems() -> Iterator[tuple[int, str]]:
    """Groups whose times or count are not those of their incidents, each once.

    Beside a running server a group may move on while it is read: then it is read again.
    """
    for pk in CauseGroup.objects.order_by("id").values_list("id", flat=True).iterator(CHUNK):
        for _ in range(TRIES):
            group = CauseGroup.objects.filter(pk=pk).first()
            what = "" if group is None else _group_problem(group)
            if not what:
                break
        else:
            yield pk, what


def _group_problem(group: CauseGroup) -> str:
    found = [
        f"{name} is {getattr(group, name)!r}, its incidents give {value!r}"
        for name, value in group_facts(group).items()
        if getattr(group, name) != value
    ]
    return "; ".join(found)


def repair_group(pk: int) -> None:
    settle_group(CauseGroup.objects.get(pk=pk))
