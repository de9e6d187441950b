"""What a server does beside its work, on one thread: judging anew, and retention once a day.

It takes a third of a core at most: after each chat it rests twice as long as that one took.
"""

from __future__ import annotations

import logging
import threading

from django.db import DatabaseError, connection

from ctxhealth.store import rejudging, retention
from ctxhealth.store.clock import now_ms
from ctxhealth.store.through import StoreBusy

LOOK_EVERY_S = 2.0
REST = 2.0
RETENTION_EVERY_MS = 24 * 3_600_000
# A server that was just started has better things to do.
FIRST_RETENTION_MS = 10 * 60_000
_LOG = logging.getLogger(__name__)


class Upkeep:
    """``kick`` makes it look at once; rules changed by another process are found by looking."""

    def __init__(self) -> None:
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._retention_due = now_ms() + FIRST_RETENTION_MS

    def start(self) -> None:
        self._thread = threading.Thread(target=self._main, name="ctxhealth-upkeep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(10)

    def kick(self) -> None:
        self._wake.set()

    def _main(self) -> None:
        try:
            while not self._stopping.is_set():
                self._wake.wait(LOOK_EVERY_S)
                self._wake.clear()
                if not self._stopping.is_set():
                    self._round()
        finally:
            connection.close()

    def _round(self) -> None:
        try:
            if rejudging.behind():
                rejudging.run_pass(self._pause)
            if now_ms() >= self._retention_due:
                self._retention_due = now_ms() + RETENTION_EVERY_MS
                retention.trim(self._pause)
        except (StoreBusy, DatabaseError) as error:
            _LOG.warning("upkeep waits: %s", str(error)[:200])
            connection.close()
        except Exception:
            _LOG.exception("upkeep failed")
            self._stopping.wait(60)

    def _pause(self, seconds: float) -> bool:
        """Rest for the writer's sake; True where the server stops."""
        return self._stopping.wait(min(5.0, seconds * REST))
