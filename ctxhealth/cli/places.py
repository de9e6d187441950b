"""How far each file was read, kept inside the outbox, in the transaction of its events."""

from __future__ import annotations

import json
import sqlite3
import zlib
from hashlib import blake2b
from typing import Any, NamedTuple

from ctxhealth.client.filing import Filing
from ctxhealth.client.outbox import Statement

HEAD = 1_024
_TABLE = (
    "CREATE TABLE IF NOT EXISTS places(path TEXT PRIMARY KEY, taken INTEGER NOT NULL,"
    " size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, head TEXT NOT NULL,"
    " format TEXT NOT NULL, waiting INTEGER NOT NULL, state BLOB NOT NULL) WITHOUT ROWID"
)


class Place(NamedTuple):
    """``offset`` bytes were read of a file that begins with ``head``; ``state`` is the reader's.

    ``size`` and ``mtime_ns`` are the file's own once nothing more was to be read; until then
    ``size`` is less, so that the rest is not taken for read. ``waiting``: the reader holds what
    is not told yet.
    """

    path: str
    offset: int
    size: int
    mtime_ns: int
    head: str
    format: str
    waiting: bool
    state: bytes

    def reader_state(self) -> dict[str, Any]:
        """Raises ValueError where it cannot be read."""
        try:
            found = json.loads(zlib.decompress(self.state))
        except (ValueError, zlib.error) as error:
            raise ValueError(str(error)) from error
        if not isinstance(found, dict):
            raise ValueError("not a reader's state")
        return found


def packed(state: dict[str, Any]) -> bytes:
    return zlib.compress(json.dumps(state, separators=(",", ":")).encode(), 1)


def head_hash(first: bytes) -> str:
    """Names a file by its first bytes; their number goes along, as a short file grows."""
    first = first[:HEAD]
    return f"{len(first)}:{blake2b(first, digest_size=16).hexdigest()}"


def begins_with(first: bytes, head: str) -> bool:
    """Whether a file that begins with ``first`` is the one that ``head`` named."""
    length = int(head.partition(":")[0])
    return len(first) >= length and head_hash(first[:length]) == head


class Places:
    """The table of places. Reads are few: one for each file that changed."""

    def __init__(self, filing: Filing) -> None:
        self._filing = filing
        filing.file((), [(_TABLE, ())])

    @staticmethod
    def make(db: sqlite3.Connection) -> None:
        """The empty table, within the caller's transaction."""
        db.execute(_TABLE)

    def known(self) -> dict[str, tuple[int, int]]:
        """path -> (size, mtime_ns) of what was read and told to its end."""
        rows = self._filing.rows("SELECT path, size, mtime_ns FROM places WHERE NOT waiting")
        return {path: (size, mtime_ns) for path, size, mtime_ns in rows}

    def find(self, path: str) -> Place | None:
        rows = self._filing.rows("SELECT * FROM places WHERE path = ?", (path,))
        return Place(*rows[0]) if rows else None

    @staticmethod
    def keep(place: Place) -> Statement:
        """The statement that keeps it, for the transaction of its events."""
        return ("INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?, ?, ?, ?, ?)", tuple(place))

    @staticmethod
    def forget() -> Statement:
        return ("DELETE FROM places", ())
