"""The machinery behind a reporter: journal, desk, two threads, and their beginning and end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .commands import CommandDesk
from .connection import Hello
from .database import InUse
from .journal import Journal
from .outbox import Bounds, Outbox
from .pump import Pump
from .texts import TextPolicy
from .uplink import Target, Uplink

log = logging.getLogger("ctxhealth.client")
_JOIN_S = 3.0


@dataclass(frozen=True)
class Room:
    """Where events wait. ``path`` None is memory; ``queue_*`` bound the host's own queue."""

    path: str | None
    bounds: Bounds
    queue_events: int
    queue_bytes: int


class Station:
    """``before``: the station of the same agent in this process that this one takes over from."""

    def __init__(
        self,
        room: Room,
        texts: TextPolicy,
        hello: Callable[[], Hello],
        target: Target,
        on_replaced: str,
    ) -> None:
        self.room = room
        self.journal = Journal(
            self._open_outbox, queue_events=room.queue_events, queue_bytes=room.queue_bytes
        )
        self.desk = CommandDesk(self.journal, texts)
        self.uplink = Uplink(self.journal, self.desk, hello, target, on_replaced)
        self.pump = Pump(self.journal, self.uplink, self._opened)
        self.before: Any = None
        self.closed = False
        self._inherited: Outbox | None = None
        self._threads: list[threading.Thread] = []

    @property
    def started(self) -> bool:
        return bool(self._threads)

    def start(self) -> None:
        """Start both threads."""
        for name, run in (("ctxhealth-pump", self.pump.run), ("ctxhealth-uplink", self.uplink.run)):
            self._threads.append(threading.Thread(target=run, name=name, daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self, why: str) -> None:
        """Store what is queued, say bye, end the threads. Takes a few seconds at the most."""
        self._end(why)
        if self.journal.ready.is_set():
            self.journal.outbox.close()

    def retire(self, heir: Station) -> Outbox | None:
        """``heir`` carries on with our events and commands; the outbox itself, if in memory.

        A file is closed instead, for the heir to open.
        """
        self.journal.bequeath(heir.journal)
        self._end("replaced in this process")
        self.journal.hand_over(heir.journal)
        if not self.journal.ready.is_set():
            return None
        if self.room.path is None and heir.room.path is None:
            return self.journal.outbox
        self.journal.outbox.close()
        return None

    def _end(self, why: str) -> None:
        self.closed = True
        self.pump.stop()
        self._join(0)
        self.uplink.stop(why)
        self._join(1)

    def worth_waiting(self) -> bool:
        """Whether a flush before the end can deliver something: also by a first connection."""
        hopeful = self.uplink.state in ("starting", "connecting")
        return self.uplink.link is not None or (hopeful and self.started)

    def status(self) -> dict[str, Any]:
        outbox = self.journal.outbox if self.journal.ready.is_set() else None
        return {
            "state": "closed" if self.closed else self.uplink.state,
            "url": self.uplink.target.url,
            "last_error": self.uplink.last_error,
            "outbox_error": self.pump.trouble,
            "epoch": outbox.epoch if outbox else None,
            "next_seq": outbox.next_seq if outbox else None,
            "acked": outbox.acked if outbox else None,
            "queued": self.journal.queued,
            "unacked": outbox.unacked if outbox else 0,
            "lost": self.journal.lost,
            "rejected": self.journal.rejected,
            "connections": self.uplink.connections,
        }

    def _opened(self) -> None:
        before, self.before = self.before, None
        if before is not None:
            self._inherited = before.retire(self)
        if not self.journal.ready.is_set():
            self.journal.open()
        self.desk.recover()

    def _open_outbox(self) -> Outbox:
        if self._inherited is not None:
            return self._inherited
        try:
            outbox = Outbox(self.room.path, self.room.bounds)
        except InUse as error:
            log.error("%s: this process keeps its events in memory", error)
            return Outbox(None, self.room.bounds)
        if outbox.db.set_aside:
            log.error("an unreadable outbox was set aside as %s", outbox.db.set_aside)
        return outbox

    def _join(self, index: int) -> None:
        if index < len(self._threads) and self._threads[index] is not threading.current_thread():
            self._threads[index].join(_JOIN_S)
