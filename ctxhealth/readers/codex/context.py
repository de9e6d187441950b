"""What is in the thread's context as far as the rollout tells: items, open calls, last load."""

from __future__ import annotations

from typing import NamedTuple

from ctxhealth.readers.base import Event
from ctxhealth.readers.codex.items import item_id, mark_of
from ctxhealth.readers.timeline import Part
from ctxhealth.readers.values import Row

MOST_ITEMS = 20_000
MOST_CALLS = 2_000
# An event holds 64 KiB; an id in it takes up to 22 bytes.
MOST_REMOVED = 2_000
_MOST_NEW = 200


class Left(NamedTuple):
    """What a compaction left: ids that are gone (None: too many to list), entries not known."""

    removed: list[str] | None
    fresh: list[Row]


class Context(Part):
    """``items``: id -> mark. ``load``: the last prompt; ``total``: with the reply to it."""

    kept = ("items", "calls", "load", "total")

    def __init__(self) -> None:
        self.items: dict[str, str] = {}
        self.calls: dict[str, None] = {}
        self.load: int | None = None
        self.total: int | None = None

    def added(self, item: Event, mark: str = "") -> None:
        self.items[item["id"]] = mark
        for call in item.get("calls", ()):
            self.calls[call] = None
        for call in item.get("answers", ()):
            self.calls.pop(call, None)
        for table, most in ((self.items, MOST_ITEMS), (self.calls, MOST_CALLS)):
            if len(table) > most:
                del table[next(iter(table))]

    def counted(self, usage: Row) -> None:
        """A reply was accepted with this usage."""
        self.load = usage["input"]
        # What the client itself compares with its limit.
        self.total = usage.get("total") or usage["input"] + usage.get("output", 0)

    def compacted(self, history: list[Row]) -> Left:
        """``history`` takes the place of what was there."""
        kept: set[str] = set()
        fresh = []
        by_mark: dict[str, list[str]] = {}
        for known, mark in self.items.items():
            # A message's images stand behind it, with its id and a number.
            if mark and "." not in known:
                by_mark.setdefault(mark, []).append(known)
        for entry in history:
            own, same = item_id(entry), by_mark.get(mark_of(entry), [])
            if own is not None and own in self.items:
                kept.add(own)
            elif same:
                kept.add(same.pop())
            else:
                fresh.append(entry)
        removed = [id for id in self.items if id.partition(".")[0] not in kept]
        self.items = {id: mark for id, mark in self.items.items() if id.partition(".")[0] in kept}
        self.calls.clear()
        self.load = self.total = None
        return Left(removed if len(removed) <= MOST_REMOVED else None, fresh[-_MOST_NEW:])
