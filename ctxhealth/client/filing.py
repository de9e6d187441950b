"""For senders that read files: events and the sender's own place in one transaction.

An agent's calls never wait for a disk; a reader of files may, and must: what it read is either
in the outbox with the place behind it, or will be read again. Nothing twice, nothing lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .bodies import body, identifier
from .epochs import now_ms
from .journal import Item
from .outbox import Statement
from .reporter import Reporter

_OWN = ("type", "ts", "chat")


class Filing:
    """A reporter's outbox, used from one thread that may block."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._journal = reporter._station.journal

    def ready(self, timeout: float) -> bool:
        """Block until the outbox is open."""
        return self._journal.ready.wait(timeout)

    @property
    def in_file(self) -> bool:
        """False where another process holds the file and this one keeps its events in memory."""
        return self._journal.outbox.path is not None

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Read the sender's own tables."""
        with self._journal.outbox.lock:
            return self._journal.outbox.db.rows(sql, values)

    def file(self, events: Iterable[Mapping[str, Any]], also: Sequence[Statement] = ()) -> None:
        """Number and store ``events`` (type, ts, chat and fields) with ``also`` at once.

        Raises sqlite3.Error where the disk does not take it.
        """
        bodies = [raw for _, _, raw in map(self._item, events)]
        self._journal.record(bodies, also, durable=False)

    def tell(self, events: Iterable[Mapping[str, Any]], also: Sequence[Statement] = ()) -> None:
        """``file`` for a sender that takes commands too: their fences know of these events.

        What finds no room in the outbox is left out and said by a gap. Raises sqlite3.Error.
        """
        told = list(events)
        items = [self._item(event) for event in told]
        for event, (kind, chat, _) in zip(told, items, strict=True):
            if chat is not None:
                self._journal.tracks.observe(kind, chat, event)
        self._journal.file(items, also)

    def _item(self, event: Mapping[str, Any]) -> Item:
        kind, chat = str(event["type"]), event.get("chat")
        chat = None if chat is None else identifier(chat)
        fields = {key: value for key, value in event.items() if key not in _OWN}
        ts = int(event.get("ts") or now_ms())
        return kind, chat, body(kind, ts, chat, fields, self._reporter.texts)
