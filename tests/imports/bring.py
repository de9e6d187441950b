"""Files brought as the page brings them, and read at once."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ctxhealth.imports.spool import Spool
from ctxhealth.imports.worker import ImportWorker
from ctxhealth.store import queries, writes
from ctxhealth.store.queries import EventRow, ImportRow


class Desk:
    """A spool of its own and a worker without a thread."""

    def __init__(self, folder: Path) -> None:
        self.spool = Spool(folder)
        self.worker = ImportWorker(self.spool)

    def queue(self, data: bytes, name: str = "session.jsonl", batch: str = "drop-1") -> int:
        spooled, file = self.spool.begin()
        with file:
            file.write(data)
        return writes.import_queue(
            batch=batch, name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest(),
            spooled=spooled,
        )  # fmt: skip

    def bring(self, data: bytes, name: str = "session.jsonl", batch: str = "drop-1") -> ImportRow:
        """The import after the worker has read it."""
        number = self.queue(data, name, batch)
        while self.worker.run_next():
            pass
        return self.row(number)

    def row(self, number: int) -> ImportRow:
        found = queries.import_get(number)
        assert found is not None
        return found


def events(chat: int | None) -> list[EventRow]:
    """The chat's whole log."""
    assert chat is not None
    found: list[EventRow] = []
    while page := queries.chat_events(chat, after=found[-1].chat_seq if found else 0, limit=1_000):
        found += page
    return found


def content(chat: int | None) -> list[tuple[str, str]]:
    """(type, body) of the chat's log."""
    return [(event.type, event.body) for event in events(chat)]
