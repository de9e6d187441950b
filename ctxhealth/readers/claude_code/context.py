"""What is in the chat's context as far as the transcript tells: items, open calls, last load."""

from __future__ import annotations

from ctxhealth.readers.base import Event
from ctxhealth.readers.timeline import Part
from ctxhealth.readers.values import Row, dict_at, list_at, short

MOST_ITEMS = 20_000
MOST_CALLS = 2_000
# An event holds 64 KiB; an id in it takes up to 20 bytes.
MOST_REMOVED = 3_000


class Context(Part):
    """``since`` counts characters that entered after the prompt of the last reply was built."""

    kept = ("items", "calls", "load", "since")

    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.calls: dict[str, None] = {}
        self.load: int | None = None
        self.since = 0

    def added(self, item: Event) -> None:
        chars = item.get("chars", 0)
        self.items[item["id"]] = chars
        self.since += chars
        for call in item.get("calls", ()):
            self.calls[call] = None
        for call in item.get("answers", ()):
            self.calls.pop(call, None)
        for table, most in ((self.items, MOST_ITEMS), (self.calls, MOST_CALLS)):
            if len(table) > most:
                del table[next(iter(table))]

    def before(self, stated: int | None) -> int | None:
        """The prompt before a compaction: the last measured load, unless more came since.

        The client's own count is an estimate that can be several times too high: it is taken
        only where the items since the last reply explain what it says beyond that reply.
        """
        if self.load is None or stated is None:
            return stated if self.load is None else self.load
        if stated <= self.load * 1.01:
            return self.load
        return stated if stated <= self.load + self.since // 2 + 5_000 else self.load

    def compacted(self, meta: Row) -> list[str] | None:
        """Drop what a boundary dropped. The ids, or None where they are too many to list."""
        kept = self._preserved(meta)
        removed = [id for id in self.items if id.split(".")[0] not in kept]
        self.items = {id: size for id, size in self.items.items() if id.split(".")[0] in kept}
        self.calls.clear()
        self.since = 0
        return removed if len(removed) <= MOST_REMOVED else None

    def _preserved(self, meta: Row) -> set[str]:
        listed = dict_at(meta, "preservedMessages")
        uuids = list_at(listed, "allUuids") or list_at(listed, "uuids")
        kept = {short(uuid) for uuid in uuids if isinstance(uuid, str)}
        segment = dict_at(meta, "preservedSegment")
        head, tail = segment.get("headUuid"), segment.get("tailUuid")
        if not kept and isinstance(head, str) and isinstance(tail, str):
            kept = self._between(short(head), short(tail))
        return kept

    def _between(self, head: str, tail: str) -> set[str]:
        rows = list(dict.fromkeys(id.split(".")[0] for id in self.items))
        if head not in rows or tail not in rows:
            return {head, tail}
        return set(rows[rows.index(head) : rows.index(tail) + 1])
