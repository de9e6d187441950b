"""Incidents, reviews and cause groups as people read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db.models import Count, F, Q, QuerySet

from ctxhealth.core.incidents_model import Cause, IncidentView
from ctxhealth.core.incidents_view import incident_view
from ctxhealth.store.incident_rows import decode_view, naming_agent
from ctxhealth.store.models import Command, Incident, IncidentNote
from ctxhealth.store.models.incidents import AUTOMATIC, REVIEW
from ctxhealth.store.queries.board import decode_summary
from ctxhealth.store.queries.cause_groups import GroupRow, decode_cause, group_rows
from ctxhealth.store.queries.chats import chat_state
from ctxhealth.store.queries.commands import CommandRow, command_row
from ctxhealth.store.queries.silences import silenced_incidents

Which = Literal["open", "closed", "all", "reviews"]
PER_PAGE = 50
PINNED_EVENTS = 50
MOST_COMMANDS = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class IncidentRow:
    """One line of the list. ``kind``: automatic or review; ``group_chats``: chats in trouble for
    the same cause now; ``owner`` of the incident, else of its group. Times server ms."""

    id: int
    kind: str
    chat: int
    chat_external: str
    chat_title: str
    agent: str
    opened_seq: int
    opened_at: int
    started_at: int
    detected_at: int
    acted_at: int | None
    acted_by: str | None
    recovered_at: int | None
    closed_seq: int | None
    closed_at: int | None
    root: str
    state: str
    severity: str
    sentence: str
    cause: Cause | None
    group: int | None
    group_chats: int
    owner: str
    verdict: str
    waiting_since: int | None

    @property
    def lasted_ms(self) -> int | None:
        """From the first evidence to the end; None while it is open."""
        return None if self.closed_at is None else self.closed_at - self.started_at


@dataclass(frozen=True, kw_only=True, slots=True)
class IncidentPage:
    """``counts`` by ``Which``, under the same text, agent and root; ``pages`` is at least 1."""

    rows: list[IncidentRow]
    page: int
    pages: int
    total: int
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class NoteRow:
    """``by_id`` is the user whose own note it is; ``text`` is Markdown as written."""

    id: int
    text: str
    by: str
    by_id: int | None
    at: int
    edited_at: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class IncidentDetail:
    """One incident in full. ``view``: by the present rules, None where they see none and for a
    review; ``judged``: as it was judged when it closed, while open as it
    is. ``from_seq`` to ``to_seq`` is what its
    page shows (None: to the end of the log), ``pinned`` with room around it."""

    row: IncidentRow
    view: IncidentView | None
    judged: IncidentView | None
    from_seq: int
    to_seq: int | None
    pinned: tuple[int, int | None]
    notes: list[NoteRow]
    verdict: str
    verdict_text: str
    verdict_by: str
    verdict_at: int | None
    owned_at: int | None
    group: GroupRow | None
    created_by: str


def incident_list(
    *,
    project: int | None = None,
    state: Which = "open",
    text: str = "",
    agent: str = "",
    root: str = "",
    page: int = 1,
    per_page: int = PER_PAGE,
) -> IncidentPage:
    """Open ones first, then the newest. ``text`` searches sentence, chat and title."""
    rows = _filtered(project, text, agent, root)
    counts = {name: rows.filter(condition).count() for name, condition in _WHICH.items()}
    total = counts[state]
    pages = max(1, -(-total // per_page))
    page = max(1, min(page, pages))
    found = rows.filter(_WHICH[state]).order_by(
        F("closed_at").desc(nulls_first=True), "-opened_at", "-id"
    )
    start = (page - 1) * per_page
    return IncidentPage(
        rows=incident_rows_of(found[start : start + per_page]),
        page=page,
        pages=pages,
        total=total,
        counts=counts,
    )


def incident_detail(incident_id: int) -> IncidentDetail | None:
    row = _rows().filter(id=incident_id).first()
    if row is None:
        return None
    view, judged = _view_now(row), decode_view(row.judged)
    if judged is None and row.closed_at is None:
        judged = view
    return IncidentDetail(
        row=incident_rows_of([row])[0],
        view=view,
        judged=judged,
        from_seq=row.started_seq,
        to_seq=row.closed_seq,
        pinned=_pinned(row),
        notes=_notes(row),
        verdict=row.verdict,
        verdict_text=row.verdict_text,
        verdict_by=row.verdict_by,
        verdict_at=row.verdict_at,
        owned_at=row.owned_at,
        group=next(iter(group_rows([row.group])), None) if row.group else None,
        created_by=row.created_by,
    )


def incident_of(chat_id: int) -> IncidentRow | None:
    """The chat's open incident."""
    found = _rows().filter(chat_id=chat_id, kind=AUTOMATIC, closed_at=None).exclude(view="")
    return next(iter(incident_rows_of(found[:1])), None)


def chat_incidents(chat_id: int, limit: int = 100) -> list[IncidentRow]:
    """A chat's incidents and reviews, newest first."""
    found = _rows().filter(chat_id=chat_id).order_by("-opened_at", "-id")
    return incident_rows_of(found[:limit])


def incidents_open_count(*, project: int | None = None) -> int:
    """How many incidents are open and not of a silenced cause; for the navigation."""
    open_ = _filtered(project, "", "", "").filter(_WHICH["open"])
    return open_.exclude(id__in=silenced_incidents()).count()


def incident_choices(*, project: int | None = None) -> dict[str, list[str]]:
    """What the list's filters can be set to: agents and roots that have incidents."""
    rows = _filtered(project, "", "", "").order_by()
    agents = rows.values_list("agent__name", flat=True).distinct()
    roots = rows.exclude(root="").values_list("root", flat=True).distinct()
    return {"agents": sorted(agents), "roots": sorted(roots)}


def incident_commands(incident_id: int) -> list[CommandRow]:
    """Commands of its chat from its first evidence to its end, oldest first."""
    row = Incident.objects.filter(id=incident_id).first()
    if row is None:
        return []
    rows = Command.objects.select_related("agent", "chat").filter(
        chat_id=row.chat_id, created_at__gte=row.started_at
    )
    if row.closed_at is not None:
        rows = rows.filter(created_at__lte=row.closed_at)
    return [command_row(found) for found in rows.order_by("created_at", "id")[:MOST_COMMANDS]]


def pinned_ranges(chat_id: int) -> list[tuple[int, int | None]]:
    """(from, to) of a chat's events that no retention may delete; None: to the end of the log."""
    rows = Incident.objects.filter(chat_id=chat_id).order_by("started_seq")
    return [_pinned(row) for row in rows]


def reviews(*, project: int | None = None, page: int = 1) -> IncidentPage:
    """Ranges that people chose to review, newest first."""
    return incident_list(project=project, state="reviews", page=page)


_WHICH: dict[str, Q] = {
    "open": Q(kind=AUTOMATIC, closed_at=None),
    "closed": Q(kind=AUTOMATIC, closed_at__isnull=False),
    "all": Q(),
    "reviews": Q(kind=REVIEW),
}


def _view_now(row: Incident) -> IncidentView | None:
    """As stored; of an open one the counts go on with every request, and only the fold has them."""
    view = decode_view(row.view)
    if view is None or row.closed_at is not None:
        return view
    state = chat_state(row.chat_id)
    incident = None if state is None else state.incident
    if state is None or incident is None or incident.opened_seq != row.opened_seq:
        return view
    return naming_agent(incident_view(state, incident), row.agent.name)


def _rows() -> QuerySet[Incident]:
    return Incident.objects.select_related("chat", "agent", "group")


def _filtered(project: int | None, text: str, agent: str, root: str) -> QuerySet[Incident]:
    rows = _rows()
    exact = {"project_id": project, "agent__name": agent, "root": root}
    rows = rows.filter(**{column: value for column, value in exact.items() if value})
    for word in text.split()[:8]:
        rows = rows.filter(
            Q(sentence__icontains=word)
            | Q(chat__external_id__icontains=word)
            | Q(chat__title__icontains=word)
            | Q(agent__name__icontains=word)
        )
    return rows


def incident_rows_of(found: Iterable[Incident]) -> list[IncidentRow]:
    rows = list(found)
    groups = {row.group_id for row in rows if row.group_id is not None}
    open_ = Incident.objects.filter(group__in=groups, closed_at=None).order_by()
    chats = Counter(dict(open_.values_list("group").annotate(n=Count("id"))))
    return [_row(row, chats) for row in rows]


def _row(row: Incident, chats: Counter[Any]) -> IncidentRow:
    view = decode_view(row.view) or decode_view(row.judged)
    group = row.group
    return IncidentRow(
        id=row.pk,
        kind=row.kind,
        chat=row.chat_id,
        chat_external=row.chat.external_id,
        chat_title=row.chat.title,
        agent=row.agent.name,
        opened_seq=row.opened_seq,
        opened_at=row.opened_at,
        started_at=row.started_at,
        detected_at=row.opened_at if view is None else view.detected_at,
        acted_at=None if view is None else view.acted_at,
        acted_by=None if view is None else view.acted_by,
        recovered_at=None if view is None else view.recovered_at,
        closed_seq=row.closed_seq,
        closed_at=row.closed_at,
        root=row.root,
        state=row.state,
        severity=row.severity,
        sentence=row.sentence,
        cause=None if group is None else decode_cause(group.cause),
        group=row.group_id,
        group_chats=0 if group is None else chats[group.pk],
        owner=row.owner_name or ("" if group is None else group.owner_name),
        verdict=row.verdict,
        waiting_since=decode_summary(row.chat.summary).waiting_since,
    )


def _pinned(row: Incident) -> tuple[int, int | None]:
    upto = None if row.closed_seq is None else row.closed_seq + PINNED_EVENTS
    return max(1, row.started_seq - PINNED_EVENTS), upto


def _notes(row: Incident) -> list[NoteRow]:
    return [note_row(note) for note in IncidentNote.objects.filter(incident=row).order_by("id")]


def note_row(note: IncidentNote) -> NoteRow:
    return NoteRow(
        id=note.pk,
        text=note.text,
        by=note.by_name,
        by_id=note.by_id,
        at=note.at,
        edited_at=note.edited_at,
    )
