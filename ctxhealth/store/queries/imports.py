"""Imports: the list, one of them, the next to read, and how far a session was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ctxhealth.store.import_place import Place
from ctxhealth.store.models import Chat, Import, ImportPlace, Stream
from ctxhealth.store.models.imports import OPEN_STATES


class Trouble(msgspec.Struct, frozen=True):
    """What could not be read: ``line`` (from 1) to ``until``, ``count`` of them, the problem and
    the shape of what stands there, without its content."""

    line: int
    problem: str
    shape: str = ""
    until: int | None = None
    count: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportRow:
    """One file that was brought. ``done_share`` is of its bytes, 0 to 1; times in ms."""

    id: int
    batch: str
    by: str
    name: str
    spooled: str
    size: int
    sha256: str
    state: str
    reason: str
    what: str
    bytes_read: int
    lines: int
    events: int
    unreadable: int
    chats: int
    resumed: int
    created_at: int
    started_at: int | None
    ended_at: int | None
    chat: int | None
    chat_title: str
    incident: int | None
    troubles: tuple[Trouble, ...] = ()

    @property
    def open(self) -> bool:
        return self.state in OPEN_STATES

    @property
    def took_ms(self) -> int | None:
        """From when it was first read to its end."""
        if self.started_at is None or self.ended_at is None:
            return None
        return self.ended_at - self.started_at


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportPage:
    """``next`` is the ``before`` of the next page; ``waiting`` counts what is not read yet."""

    rows: list[ImportRow]
    next: int | None
    waiting: int


def imports_page(
    before: int | None = None, limit: int = 50, batch: str = "", state: str = ""
) -> ImportPage:
    """Newest first; ``batch`` and ``state`` narrow it."""
    found = Import.objects.select_related("chat").order_by("-id")
    if before is not None:
        found = found.filter(id__lt=before)
    if batch:
        found = found.filter(batch=batch)
    if state:
        found = found.filter(state=state)
    rows = list(found[: limit + 1])
    return ImportPage(
        rows=[_row(row) for row in rows[:limit]],
        next=rows[limit - 1].pk if len(rows) > limit else None,
        waiting=Import.objects.filter(state__in=OPEN_STATES).count(),
    )


def import_get(import_id: int) -> ImportRow | None:
    """One, with its troubles."""
    row = Import.objects.select_related("chat").filter(id=import_id).first()
    return None if row is None else _row(row)


def import_next() -> ImportRow | None:
    """The oldest that waits; what was being read when the server stopped comes first."""
    waiting = Import.objects.filter(state="queued").order_by("-resumed", "id")
    row = waiting.first()
    return None if row is None else _row(row)


def import_twin(sha256: str, than: int) -> ImportRow | None:
    """An earlier import of the very same bytes that reached its chat."""
    same = Import.objects.filter(sha256=sha256, state__in=("done", "known"), id__lt=than)
    row = same.exclude(chat=None).select_related("chat").order_by("-id").first()
    return None if row is None or not sha256 else _row(row)


def import_names(batch: str) -> list[str]:
    """The names of all files that were dropped together."""
    return list(Import.objects.filter(batch=batch).values_list("name", flat=True)[:1_000])


def import_place(agent: int, session: str) -> Place | None:
    """How far this agent's session was read."""
    row = ImportPlace.objects.filter(agent_id=agent, session=session[:200]).first()
    return None if row is None else Place(row.seq, row.offset, row.digest, bytes(row.reader))


def stream_head(stream: int) -> int:
    """How many events of a stream are stored."""
    return Stream.objects.filter(id=stream).values_list("head", flat=True).first() or 0


def chat_of(agent: int, session: str) -> int | None:
    """The agent's chat of that name."""
    found = Chat.objects.filter(agent_id=agent, external_id=session).values_list("id", flat=True)
    return found.first()


def _row(row: Import) -> ImportRow:
    chat: Any = row.chat
    return ImportRow(
        id=row.pk,
        batch=row.batch,
        by=row.by_name,
        name=row.name,
        spooled=row.spooled,
        size=row.size,
        sha256=row.sha256,
        state=row.state,
        reason=row.reason,
        what=row.what,
        bytes_read=row.bytes_read,
        lines=row.lines,
        events=row.events,
        unreadable=row.unreadable,
        chats=row.chats,
        resumed=row.resumed,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        chat=row.chat_id,
        chat_title=(chat.title or chat.external_id) if chat is not None else "",
        incident=row.incident,
        troubles=_troubles(row.troubles),
    )


def _troubles(text: str) -> tuple[Trouble, ...]:
    return msgspec.json.decode(text, type=tuple[Trouble, ...]) if text else ()
