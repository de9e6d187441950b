"""One shift: what is open and whose, what was pressed and what came of it, what is left over."""

from __future__ import annotations

from dataclasses import dataclass

from ctxhealth.store.models import Command, HandoverNote, Incident
from ctxhealth.store.models.incidents import AUTOMATIC
from ctxhealth.store.queries.cause_groups import GroupRow, cause_groups_open
from ctxhealth.store.queries.commands import CommandRow, command_row
from ctxhealth.store.queries.incidents import IncidentRow, incident_rows_of
from ctxhealth.store.queries.silences import SilenceRow, silences_active

MOST = 200
CHATS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class TroubledChat:
    """A chat in trouble for a cause; ``incident`` is its open one."""

    id: int
    title: str
    incident: int
    sentence: str
    owner: str
    waiting_since: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenCause:
    """``chats`` are the first ones, ``owners`` who took single chats of it; ``owner`` of all."""

    group: GroupRow
    chats: list[TroubledChat]
    silence: SilenceRow | None

    @property
    def owners(self) -> list[str]:
        return sorted({chat.owner for chat in self.chats if chat.owner})


@dataclass(frozen=True, kw_only=True, slots=True)
class Pressed:
    """``unresolved``: it ended without success, or its chat is in trouble still."""

    command: CommandRow
    chat_title: str
    incident: int | None

    @property
    def unresolved(self) -> bool:
        return not self.command.open and self.incident is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Shift:
    """From ``since`` (server ms) to now. ``closed`` are incidents that ended in it."""

    since: int
    causes: list[OpenCause]
    pressed: list[Pressed]
    closed: list[IncidentRow]
    opened: int
    silences: list[SilenceRow]

    @property
    def unresolved(self) -> list[Pressed]:
        """The newest press of each chat that did not help."""
        newest: dict[int | None, Pressed] = {}
        for press in self.pressed:
            newest.setdefault(press.command.chat, press)
        return [press for press in newest.values() if press.unresolved]


@dataclass(frozen=True, kw_only=True, slots=True)
class HandoverRow:
    id: int
    text: str
    by: str
    at: int


def shift(*, since: int, now: int | None = None) -> Shift:
    """What stands open now and what was done since ``since``."""
    silences = silences_active(now)
    began = Incident.objects.filter(kind=AUTOMATIC, opened_at__gte=since)
    ended = Incident.objects.filter(kind=AUTOMATIC, closed_at__gte=since)
    closed = ended.select_related("chat", "agent", "group").order_by("-closed_at", "-id")
    return Shift(
        since=since,
        causes=_causes(silences),
        pressed=_pressed(since),
        closed=incident_rows_of(closed[:MOST]),
        opened=began.count(),
        silences=silences,
    )


def handover_notes(limit: int = 20) -> list[HandoverRow]:
    """The note and its earlier versions, newest first."""
    return [
        HandoverRow(id=row.pk, text=row.text, by=row.by_name, at=row.at)
        for row in HandoverNote.objects.order_by("-id")[:limit]
    ]


def _causes(silences: list[SilenceRow]) -> list[OpenCause]:
    silent = {row.group: row for row in silences}
    groups = cause_groups_open()
    chats = _troubled([group.id for group in groups])
    found = [
        OpenCause(group=group, chats=chats.get(group.id, [])[:CHATS], silence=silent.get(group.id))
        for group in groups
    ]
    return sorted(found, key=lambda cause: cause.silence is not None)


def _troubled(groups: list[int]) -> dict[int, list[TroubledChat]]:
    open_ = Incident.objects.filter(group__in=groups, closed_at=None).select_related("chat")
    found: dict[int, list[TroubledChat]] = {}
    for row in open_.order_by("opened_at", "id"):
        if row.group_id is not None:
            found.setdefault(row.group_id, []).append(_chat(row))
    return found


def _chat(row: Incident) -> TroubledChat:
    chat = row.chat
    return TroubledChat(
        id=chat.pk,
        title=chat.title or chat.external_id,
        incident=row.pk,
        sentence=row.sentence,
        owner=row.owner_name,
        waiting_since=chat.waiting_since,
    )


def _pressed(since: int) -> list[Pressed]:
    commands = Command.objects.select_related("agent", "chat").filter(created_at__gte=since)
    rows = list(commands.exclude(kind="ping").order_by("-created_at", "-id")[:MOST])
    chats = {row.chat_id for row in rows if row.chat_id is not None}
    open_ = Incident.objects.filter(chat__in=chats, kind=AUTOMATIC, closed_at=None)
    incidents = dict(open_.values_list("chat_id", "id"))
    return [
        Pressed(
            command=command_row(row),
            chat_title=(row.chat.title or row.chat.external_id) if row.chat is not None else "",
            incident=incidents.get(row.chat_id) if row.chat_id is not None else None,
        )
        for row in rows
    ]
