"""The log of a chat as the page and the API show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ctxhealth.store.models import Event

MAX_PAGE = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class EventRow:
    """One event. ``code``, ``path`` and ``detail`` say why a tombstone was refused."""

    id: int
    chat_seq: int | None
    seq: int | None
    type: str
    ts: int
    received: int
    at: int
    body: str
    tombstone: bool
    by_server: bool
    code: str | None = None
    path: str | None = None
    detail: str | None = None


def chat_events(
    chat_id: int,
    after: int | None = None,
    limit: int = 100,
    types: Sequence[str] = (),
    before: int | None = None,
) -> list[EventRow]:
    """Events in the order of ``chat_seq``, ascending.

    With ``after``: the page that follows it. With ``before``: the page that ends just before it.
    With neither: the newest page.
    """
    rows = Event.objects.filter(chat_id=chat_id)
    if types:
        rows = rows.filter(type__in=list(types))
    limit = max(1, min(limit, MAX_PAGE))
    if after is not None:
        return [
            event_row(row) for row in rows.filter(chat_seq__gt=after).order_by("chat_seq")[:limit]
        ]
    if before is not None:
        rows = rows.filter(chat_seq__lt=before)
    return [event_row(row) for row in rows.order_by("-chat_seq")[:limit]][::-1]


def chat_event(chat_id: int, chat_seq: int) -> EventRow | None:
    row = Event.objects.filter(chat_id=chat_id, chat_seq=chat_seq).first()
    return event_row(row) if row else None


def chat_event_types(chat_id: int) -> list[str]:
    """The types that occur in this chat's log, sorted."""
    return sorted(Event.objects.filter(chat_id=chat_id).values_list("type", flat=True).distinct())


def event_row(event: Event) -> EventRow:
    """The row of a stored event."""
    why = _why(event.body) if event.tombstone else {}
    return EventRow(
        id=event.pk,
        chat_seq=event.chat_seq,
        seq=event.seq,
        type=event.type,
        ts=event.ts,
        received=event.received,
        at=event.at,
        body=event.body,
        tombstone=event.tombstone,
        by_server=event.stream_id is None,
        code=why.get("code"),
        path=why.get("path"),
        detail=why.get("detail"),
    )


def _why(body: str) -> dict[str, Any]:
    found = msgspec.json.decode(body).get("extra", {}).get("reject", {})
    return found if isinstance(found, dict) else {}
