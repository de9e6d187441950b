"""The outbox's SQLite file: opened alone, or set aside where it cannot be read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events(
  seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS commands(
  id TEXT PRIMARY KEY, chat TEXT, kind TEXT NOT NULL, state TEXT NOT NULL,
  at_ms INTEGER NOT NULL, result BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fences(
  chat TEXT PRIMARY KEY, compactions INTEGER NOT NULL, latches TEXT NOT NULL) WITHOUT ROWID;
"""


class InUse(RuntimeError):
    """Another process (or a reporter that is still closing) holds the file."""


class Database:
    """One connection, locked against other processes for its whole life.

    The exclusive lock keeps two processes from numbering one stream, and keeps the write-ahead
    log in one process's hands.
    """

    def __init__(self, path: str | None) -> None:
        """Raises InUse; a file that is no database is renamed to ``set_aside`` and replaced."""
        self.set_aside: str | None = None
        try:
            self._db = _connect(path)
        except sqlite3.DatabaseError as error:
            if path is None or isinstance(error, sqlite3.OperationalError):
                raise
            self.set_aside = _set_aside(path)
            self._db = _connect(path)

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """``durable``: synced to the disk at the end, with everything committed before it."""
        if durable:
            self._db.execute("PRAGMA synchronous=FULL")
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        finally:
            if durable:
                self._db.execute("PRAGMA synchronous=NORMAL")

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return self._db.execute(sql, values).fetchall()

    def one(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else row[0]

    def meta(self, key: str) -> str | None:
        found = self.one("SELECT value FROM meta WHERE key = ?", (key,))
        return None if found is None else str(found)

    def close(self) -> None:
        self._db.close()


def set_meta(db: sqlite3.Connection, **values: object) -> None:
    """Within the caller's transaction."""
    db.executemany(
        "INSERT INTO meta(key, value) VALUES (?, ?)"
        " ON CONFLICT(key) DO UPDATE SET value = excluded.value",
        [(key, str(value)) for key, value in values.items()],
    )


def _connect(path: str | None) -> sqlite3.Connection:
    if path is not None:
        _prepare(path)
    db = sqlite3.connect(
        path or ":memory:", timeout=0, isolation_level=None, check_same_thread=False
    )
    try:
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA journal_size_limit=8388608")
        db.execute("BEGIN EXCLUSIVE")
        db.execute("COMMIT")
        db.executescript(_SCHEMA)
    except sqlite3.OperationalError as error:
        db.close()
        if "locked" in str(error):
            raise InUse(f"{path} is held by another process") from error
        raise
    except BaseException:
        db.close()
        raise
    return db


def _prepare(path: str) -> None:
    """The folder, and a file that only its owner can read: it holds text of chats."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not os.path.exists(path):
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _set_aside(path: str) -> str:
    number = 1
    while os.path.exists(f"{path}.unreadable-{number}"):
        number += 1
    os.replace(path, f"{path}.unreadable-{number}")
    for rest in (f"{path}-wal", f"{path}-shm"):
        if os.path.exists(rest):
            os.remove(rest)
    return f"{path}.unreadable-{number}"
