"""What is in the session's context as far as its file tells: items and open calls."""

from __future__ import annotations

from ctxhealth.readers.base import Event
from ctxhealth.readers.timeline import Part

MOST_ITEMS = 20_000
MOST_CALLS = 2_000
# An event holds 64 KiB; an id in it takes up to 20 bytes.
MOST_REMOVED = 2_500


class Context(Part):
    """``items`` and ``calls`` in the order they came; ``calls`` are those without a result."""

    kept = ("items", "calls")

    def __init__(self) -> None:
        self.items: dict[str, None] = {}
        self.calls: dict[str, None] = {}

    def added(self, item: Event) -> None:
        self.items[item["id"]] = None
        for call in item.get("calls", ()):
            self.calls[call] = None
        for call in item.get("answers", ()):
            self.calls.pop(call, None)
        for table, most in ((self.items, MOST_ITEMS), (self.calls, MOST_CALLS)):
            if len(table) > most:
                del table[next(iter(table))]

    def compacted(self) -> list[str] | None:
        """The file does not say what was kept, so all of it stands for the summary now. The ids,
        or None where too many."""
        removed = list(self.items)
        self.items.clear()
        self.calls.clear()
        return removed if len(removed) <= MOST_REMOVED else None
