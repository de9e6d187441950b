"""For senders that read files: events and the sender's own place in one transaction.

An agent's calls never wait for a disk; a reader of files may, and must: what it read is either
in the outbox with the place behind it, or will be read again. Nothing twice, nothing lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .bodies import body, identifier
from .epochs import now_ms
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
        texts = self._reporter.texts
        bodies = [
            body(
                str(event["type"]),
                int(event.get("ts") or now_ms()),
                identifier(event["chat"]) if event.get("chat") is not None else None,
                {key: value for key, value in event.items() if key not in _OWN},
                texts,
            )
            for event in events
        ]
        self._journal.record(bodies, also, durable=False)
