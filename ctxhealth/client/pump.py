"""The thread between the host's queue and the socket: numbers, stores, sends, beats."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable

from .journal import Journal
from .uplink import Uplink

log = logging.getLogger("ctxhealth.client")
# While events keep coming they are fetched at this pace, and no call has to wake this thread;
# a burst costs one transaction and few thread switches.
_ROUND_S = 0.02
_AWAKE_S = 1.0
_TICK_S = 1.0


class Pump:
    """``opened`` runs once after the outbox is open, before anything is sent."""

    def __init__(self, journal: Journal, uplink: Uplink, opened: Callable[[], None]) -> None:
        self._journal, self._uplink, self._opened = journal, uplink, opened
        self._stopping = threading.Event()
        self.trouble: str | None = None

    def run(self) -> None:
        if not self._open():
            return
        journal, busy_at = self._journal, time.monotonic()
        while not self._stopping.is_set():
            if journal.queued:
                busy_at = time.monotonic()
            wait = self._turn_safely()
            awake = time.monotonic() - busy_at < _AWAKE_S
            journal.asleep = not awake
            if journal.queued and not awake:
                # Put after the turn and before ``asleep`` was set: nobody woke us for it.
                continue
            pace = _ROUND_S if awake else _TICK_S
            journal.wake.wait(pace if wait is None else min(wait, pace))
            journal.wake.clear()
        self._turn_safely()

    def stop(self) -> None:
        self._stopping.set()
        self._journal.wake.set()

    def _open(self) -> bool:
        while True:
            # At least once, also when it is to stop: what is queued must come to the disk.
            try:
                self._opened()
                return True
            except Exception as error:
                self._say(f"the outbox cannot be opened: {error}")
            if self._stopping.wait(1.0):
                return False

    def _turn_safely(self) -> float | None:
        # This thread must outlive whatever goes wrong in one round.
        try:
            return self._turn()
        except Exception as error:
            self._say(f"a round failed: {type(error).__name__}: {error}")
            return _TICK_S

    def _turn(self) -> float | None:
        """One round; seconds until the next is due, None if only a wake-up makes it so."""
        self._store()
        link = self._uplink.link
        if link is None:
            return None
        link.beat(self._journal.outbox.next_seq - 1)
        return link.send_ready(self._journal.outbox)

    def _store(self) -> None:
        try:
            self._journal.drain()
            self.trouble = None
        except sqlite3.Error as error:
            self._say(f"the outbox cannot be written: {error}")
            # Pace the next try; the queue is bounded and says what it had to drop.
            self._stopping.wait(0.2)

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            log.error("%s", trouble)
        self.trouble = trouble
