"""Repairing broken pairs: every call gets a result, every result has a call.

A provider refuses a request with an orphan whatever its size, so that neither compaction nor a
retry helps; only closing the pair does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from .history import Bulk, History, Item, Topic
from .shorten import CHARS_PER_TOKEN

NO_RESULT = "[no result was recorded for this call; it may or may not have run]"


@dataclass(frozen=True)
class Repair:
    """What was repaired: ids of calls closed, of results dropped, of repeated calls dropped."""

    closed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.closed or self.dropped or self.repeated)

    def to_dict(self) -> dict[str, object]:
        return {
            "closed": list(self.closed),
            "dropped": list(self.dropped),
            "repeated": list(self.repeated),
        }


def repair_pairs(
    history: History,
    *,
    in_flight: Collection[str] = (),
    count: Callable[[str], int] | None = None,
) -> tuple[History, Repair]:
    """Close orphan calls with a synthetic result that says so, and drop orphan results.

    A result that stands before its call, or a second one for the same call, is an orphan too; a
    call id made twice is kept once. ``in_flight`` are calls that are still running: they stay
    open. Returns the same history where nothing is broken.
    """
    work = _Work(frozenset(in_flight), count)
    work.learn(history.sent_items())
    bulks = tuple(work.bulk(bulk) for bulk in history.bulks)
    topics = tuple(work.topic(topic) for topic in history.topics)
    current = work.topic(history.current)
    repair = Repair(tuple(work.closed), tuple(work.dropped), tuple(work.repeated))
    if not repair.changed:
        return history, repair
    topics = tuple(topic for topic in topics if topic.items)
    return replace(history, bulks=bulks, topics=topics, current=current), repair


@dataclass
class _Work:
    """One pass over the items in order."""

    in_flight: frozenset[str]
    count: Callable[[str], int] | None
    answered: set[str] = field(default_factory=set)
    closed: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    _made: set[str] = field(default_factory=set)
    _given: set[str] = field(default_factory=set)

    def learn(self, items: Iterable[Item]) -> None:
        """Find the calls that have a result behind them."""
        made: set[str] = set()
        for item in items:
            self.answered.update(made.intersection(item.answers))
            made.update(item.calls)

    def topic(self, topic: Topic) -> Topic:
        items = self._items(topic.items)
        return topic if items == topic.items else replace(topic, items=items)

    def bulk(self, bulk: Bulk) -> Bulk:
        """Repair what a blank bulk sends; a summarised bulk sends no calls."""
        if not bulk.is_blank:
            return bulk
        sent = tuple(bulk.sent())
        items = self._items(sent)
        return bulk if items == sent else replace(bulk, items=items)

    def _items(self, items: Iterable[Item]) -> tuple[Item, ...]:
        out: list[Item] = []
        pending: list[Item] = []
        for item in items:
            if pending and not item.is_result:
                out.extend(pending)
                pending = []
            kept = self._kept(item)
            if kept is not None:
                out.append(kept)
                pending.extend(self._closing(kept))
        return (*out, *pending)

    def _kept(self, item: Item) -> Item | None:
        """Return the item without orphan ids; ``None`` where nothing else is in it."""
        calls = self._new(item.calls, self._made, self.repeated)
        good = [call for call in item.answers if call in self._made]
        self.dropped.extend(call for call in item.answers if call not in self._made)
        answers = self._new(good, self._given, self.dropped)
        if calls == item.calls and answers == item.answers:
            return item
        empty = (item.calls and not calls) or (item.answers and not answers)
        if empty and item.kind in ("tool_call", "tool_result", "image", "data"):
            return None
        return replace(item, calls=calls, answers=answers)

    @staticmethod
    def _new(ids: Iterable[str], seen: set[str], rest: list[str]) -> tuple[str, ...]:
        fresh = []
        for call in ids:
            if call in seen:
                rest.append(call)
            else:
                seen.add(call)
                fresh.append(call)
        return tuple(fresh)

    def _closing(self, item: Item) -> list[Item]:
        """Return a synthetic result for each call of the item that nothing answers."""
        orphans = [c for c in item.calls if c not in self.answered and c not in self.in_flight]
        self.closed.extend(orphans)
        self._given.update(orphans)
        size = self.count(NO_RESULT) if self.count else math.ceil(len(NO_RESULT) / CHARS_PER_TOKEN)
        return [
            Item(
                id=f"repair:{call}",
                role="tool",
                kind="tool_result",
                tokens=size,
                text=NO_RESULT,
                name=item.name,
                answers=(call,),
            )
            for call in orphans
        ]
