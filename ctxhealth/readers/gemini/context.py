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
        # By id, the turn of each.
        self.items: dict[str, str | None] = {}
        self.calls: dict[str, None] = {}

    def added(self, item: Event, turn: str | None) -> None:
        self.items[item["id"]] = turn
        for call in item.get("calls", ()):
            self.calls[call] = None
        for call in item.get("answers", ()):
            self.calls.pop(call, None)
        if len(self.items) > MOST_ITEMS:
            del self.items[next(iter(self.items))]
        if len(self.calls) > MOST_CALLS:
            del self.calls[next(iter(self.calls))]

    def compacted(self, running: str | None) -> list[str] | None:
        """Ids of the items that a summary stands for now, or None where too many.

        The file does not name them; those of the turn that is ``running`` go on.
        """
        removed = [id for id, turn in self.items.items() if running is None or turn != running]
        for id in removed:
            del self.items[id]
        if running is None:
            self.calls.clear()
        return removed if len(removed) <= MOST_REMOVED else None
