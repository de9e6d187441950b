"""The members of a chat's history, and the history as the engine plans over it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from ctxhealth.engine.history import Bulk, History, Topic
from ctxhealth.engine.history import Item as EngineItem
from ctxhealth.store.models import Event, Item
from ctxhealth.wire import decode_stored
from ctxhealth.wire.events import HistorySnapshot

MAX_ITEMS = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemRow:
    """One item; ``removed_seq`` is the event that took it out of the context."""

    id: str
    role: str
    kind: str
    tokens: int | None
    place: str
    name: str
    excerpt: str
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    read: bool | None
    added_seq: int
    removed_seq: int | None


def chat_items(
    chat_id: int, in_context: bool | None = True, limit: int = 20, heavy: bool = True
) -> list[ItemRow]:
    """Items, heaviest first, or with ``heavy=False`` in the order they came.

    ``in_context``: True those still in, False those that left, None all.
    """
    rows = Item.objects.filter(chat_id=chat_id)
    if in_context is not None:
        rows = rows.filter(removed_seq__isnull=in_context)
    if heavy:
        rows = rows.filter(tokens__isnull=False).order_by("-tokens", "added_seq")
    else:
        rows = rows.order_by("added_seq", "id")
    return [_row(row) for row in rows[:limit]]


def chat_history_mirror(chat_id: int) -> History | None:
    """The chat's history as reported, for previews; sizes stand in where text was not shared.

    None where the agent reported no membership, or an item without a size: a preview over
    guesses would promise what nobody can keep.
    """
    items = chat_items(chat_id, in_context=True, limit=MAX_ITEMS + 1, heavy=False)
    if len(items) > MAX_ITEMS or any(item.tokens is None for item in items):
        return None
    parts = snapshot_parts(chat_id)
    bulks = [bulk for part in parts for bulk in part.bulks]
    if not items and not bulks:
        return None
    if any(bulk.tokens is None for bulk in bulks):
        return None
    return History(
        system=_size(parts, "system"),
        tools=_size(parts, "tools"),
        extras=_size(parts, "extras") or 0,
        bulks=tuple(
            Bulk(id=bulk.id, tokens=bulk.tokens or 0, text=bulk.excerpt, records=bulk.records or 1)
            for bulk in bulks
        ),
        topics=_topics(items, parts, {bulk.id for bulk in bulks}),
        current=_current(items),
    )


def snapshot_parts(chat_id: int, upto: int | None = None) -> list[HistorySnapshot]:
    """The parts of the newest snapshot at or before event ``upto``, in their order."""
    rows = Event.objects.filter(chat_id=chat_id, type="history.snapshot", tombstone=False)
    if upto is not None:
        rows = rows.filter(chat_seq__lte=upto)
    bodies = rows.order_by("-chat_seq").values_list("body", flat=True)
    newest = _snapshots(bodies[:1])
    if newest and (newest[0].parts or 1) > 1:
        # Its other parts came just before it.
        around = _snapshots(bodies[: newest[0].parts])
        newest = [part for part in around if part.revision == newest[0].revision]
    return newest[::-1]


def _snapshots(bodies: Iterable[str]) -> list[HistorySnapshot]:
    events = [decode_stored(body) for body in bodies]
    return [event for event in events if isinstance(event, HistorySnapshot)]


def _size(parts: list[HistorySnapshot], name: str) -> int | None:
    return next((size for part in parts if (size := getattr(part, name)) is not None), None)


def _topics(
    items: list[ItemRow], parts: list[HistorySnapshot], bulk_ids: set[str]
) -> tuple[Topic, ...]:
    titles = {topic.id: topic.title for part in parts for topic in part.topics}
    places: dict[str, list[EngineItem]] = {place: [] for place in titles}
    for item in items:
        if item.place and item.place != "current" and item.place not in bulk_ids:
            places.setdefault(item.place, []).append(_engine_item(item))
    return tuple(
        Topic(id=place, items=tuple(members), title=titles.get(place))
        for place, members in places.items()
        if members
    )


def _current(items: list[ItemRow]) -> Topic:
    members = [_engine_item(item) for item in items if item.place in ("", "current")]
    return Topic("current", tuple(members))


def _engine_item(item: ItemRow) -> EngineItem:
    return EngineItem(
        id=item.id,
        role=item.role,
        kind=item.kind,
        tokens=item.tokens or 0,
        name=item.name or None,
        calls=item.calls,
        answers=item.answers,
        read=item.read is not False,
    )


def _row(row: Item) -> ItemRow:
    return ItemRow(
        id=row.item,
        role=row.role,
        kind=row.kind,
        tokens=row.tokens,
        place=row.place,
        name=row.name,
        excerpt=row.excerpt,
        calls=tuple(msgspec.json.decode(row.calls)) if row.calls else (),
        answers=tuple(msgspec.json.decode(row.answers)) if row.answers else (),
        read=row.read,
        added_seq=row.added_seq,
        removed_seq=row.removed_seq,
    )
