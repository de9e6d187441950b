"""What is in the session's context as far as its file tells: entries, items, last load."""

from __future__ import annotations

from ctxhealth.readers.base import Event
from ctxhealth.readers.timeline import Part
from ctxhealth.readers.values import Row, count_at, text_at

MOST_ITEMS = 20_000
MOST_CALLS = 2_000
# An event holds 64 KiB; an id in it takes up to 20 bytes.
MOST_REMOVED = 2_500


class Context(Part):
    """``items``: id -> number of its entry, -1 for the system prompt, which every compaction
    keeps; ``entries``: id of an entry -> its number; ``calls``: those without a result yet.

    ``load`` is the last prompt, ``total`` that with its reply, ``since`` the characters that
    came after.
    """

    kept = ("items", "entries", "calls", "load", "total", "since", "number", "last")

    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.entries: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.load: int | None = None
        self.total: int | None = None
        self.since = 0
        self.number = -1
        self.last: str | None = None

    def entry(self, row: Row) -> bool:
        """One more row of the file; False where it does not go on from the row before it."""
        self.number += 1
        id, parent, last = text_at(row, "id"), text_at(row, "parentId"), self.last
        if id is None:
            return True
        self.last = id
        self.entries[id] = self.number
        if len(self.entries) > MOST_ITEMS:
            del self.entries[next(iter(self.entries))]
        return parent is None or last is None or parent == last or parent not in self.entries

    def added(self, item: Event) -> None:
        self.items[item["id"]] = -1 if item["role"] == "system" else self.number
        self.since += item.get("chars", 0)
        for call in item.get("calls", ()):
            self.calls[call] = self.number
        for call in item.get("answers", ()):
            self.calls.pop(call, None)
        for table, most in ((self.items, MOST_ITEMS), (self.calls, MOST_CALLS)):
            if len(table) > most:
                del table[next(iter(table))]

    def counted(self, usage: Row) -> None:
        """A reply was accepted with this usage."""
        load = sum(usage.get(key, 0) for key in ("input", "cache_read", "cache_write"))
        self.load, self.total = load, load + usage.get("output", 0)
        self.since = 0

    def before(self, stated: int | None) -> int | None:
        """The prompt that a compaction found: the last reply's count with the reply itself.

        The client's own number is taken only where the items since that reply explain what it
        says beyond; after an overflow it is a fresh estimate of a fraction of the prompt.
        """
        if self.total is None or stated is None:
            return stated if self.total is None else self.total
        explained = self.total <= stated <= self.total + self.since // 2 + 5_000
        return stated if explained else self.total

    def compacted(self, row: Row) -> list[str] | None:
        """Drop what stands before the first kept entry. The ids, or None where too many."""
        first = count_at(row, "firstKeptEntryIndex")
        kept = text_at(row, "firstKeptEntryId")
        if kept is not None:
            first = self.entries.get(kept)
        if first is None:
            first = self.number
        removed = [id for id, number in self.items.items() if 0 <= number < first]
        for id in removed:
            del self.items[id]
        self.calls = {call: number for call, number in self.calls.items() if number >= first}
        self.load = self.total = None
        self.since = 0
        return removed if len(removed) <= MOST_REMOVED else None
