"""Which commands were begun and how they ended: the memory behind "at most once"."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from .outbox import Outbox, Statement

TERMINAL = ("succeeded", "failed", "refused", "expired", "cancelled", "unknown")
_KEPT = 2_000


@dataclass(frozen=True)
class Entry:
    """``result``: the body of the command's last progress event."""

    id: str
    chat: str | None
    kind: str
    state: str
    result: bytes

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL


def find(outbox: Outbox, command: str) -> Entry | None:
    with outbox.lock:
        rows = outbox.db.rows(
            "SELECT id, chat, kind, state, result FROM commands WHERE id = ?", (command,)
        )
    return Entry(*rows[0]) if rows else None


def interrupted(outbox: Outbox) -> list[Entry]:
    """Begun, and no end on record: the process died in between."""
    with outbox.lock:
        rows = outbox.db.rows(
            "SELECT id, chat, kind, state, result FROM commands WHERE state = 'started'"
        )
    return [Entry(*row) for row in rows]


def noted(entry: Entry, at_ms: int) -> Statement:
    """To run in the transaction that stores the same progress event."""
    return (
        "INSERT INTO commands(id, chat, kind, state, at_ms, result) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT(id) DO UPDATE SET state = excluded.state, result = excluded.result",
        (entry.id, entry.chat, entry.kind, entry.state, at_ms, entry.result),
    )


def forget_old(outbox: Outbox) -> None:
    """Keep the newest 2,000 ended commands; those still open always stay."""
    marks = ", ".join("?" for _ in TERMINAL)
    with outbox.lock, outbox.db.transaction() as db:
        _delete_old(db, marks)


def _delete_old(db: sqlite3.Connection, marks: str) -> None:
    db.execute(
        f"DELETE FROM commands WHERE state IN ({marks}) AND id NOT IN"
        f" (SELECT id FROM commands WHERE state IN ({marks}) ORDER BY at_ms DESC LIMIT ?)",
        (*TERMINAL, *TERMINAL, _KEPT),
    )
