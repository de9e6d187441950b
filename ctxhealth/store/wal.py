"""SQLite's write-ahead log: checkpoints on a thread of their own, so that no commit waits.

The writer's connection never checkpoints by itself (a checkpoint inside COMMIT tripled the p99).
Passive checkpoints cannot reset a log that is always written to; past ``LARGE_PAGES`` the writer
does that itself between two transactions.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from django.db import DatabaseError, connection

from ctxhealth.store.counters import WriterCounters

EVERY_S = 1.0
LARGE_PAGES = 32_768  # of 4 KiB: 128 MiB
RESTART_WAIT_MS = 200
_LOG = logging.getLogger(__name__)


class Checkpointer:
    """One passive checkpoint a second."""

    def __init__(self, counters: WriterCounters) -> None:
        self._counters = counters
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._main, name="ctxhealth-wal", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(5)

    def _main(self) -> None:
        try:
            while not self._stop.wait(EVERY_S):
                self._checkpoint()
        finally:
            connection.close()

    def _checkpoint(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
                _, pages, done = cursor.fetchone()
        except DatabaseError as error:
            _LOG.warning("cannot checkpoint: %s", str(error)[:200])
            connection.close()
            return
        self._counters.wal_pages = pages if done < pages or pages > LARGE_PAGES else 0


class Watch:
    """Whether another connection has committed to SQLite's file since this one looked last.

    To be asked inside a transaction of the connection it is always asked with.
    """

    def __init__(self) -> None:
        self._seen: int | None = None

    def alone(self, writes_on: Any) -> bool:
        """True where nobody else wrote; False where it is not known."""
        if writes_on.vendor != "sqlite":
            return False
        with writes_on.cursor() as cursor:
            cursor.execute("PRAGMA data_version")
            (now,) = cursor.fetchone()
        before, self._seen = self._seen, now
        return bool(before == now)


def leave_checkpoints(writes_on: Any) -> None:
    """Tell a fresh connection of the writer that checkpoints are the thread's business."""
    if writes_on.vendor == "sqlite":
        with writes_on.cursor() as cursor:
            cursor.execute("PRAGMA wal_autocheckpoint=0")


def restart(writes_on: Any) -> None:
    """Let the next transaction begin at the log's start; waits for readers only shortly."""
    try:
        with writes_on.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout={RESTART_WAIT_MS}")
            cursor.execute("PRAGMA wal_checkpoint(RESTART)")
            cursor.fetchone()
            cursor.execute("PRAGMA busy_timeout=5000")
    except DatabaseError as error:
        _LOG.warning("cannot restart the write-ahead log: %s", str(error)[:200])
