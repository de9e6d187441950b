"""From the host's calls to numbered events: a bounded queue in front of the outbox."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .epochs import now_ms
from .fences import Tracks
from .outbox import Outbox, Statement

log = logging.getLogger("ctxhealth.client")
Item = tuple[str, "str | None", bytes]
_POLL_S = 0.02
_FENCED = ("compaction.finished", "latch.set", "latch.cleared")


class Journal:
    """``put`` is for the host's threads: no disk, no network, no waiting for either."""

    def __init__(
        self, open_outbox: Callable[[], Outbox], *, queue_events: int, queue_bytes: int
    ) -> None:
        self.tracks = Tracks()
        self.ready = threading.Event()
        self.wake = threading.Event()
        # Waking a thread costs more than the rest of ``put``: done only where the pump sleeps.
        self.asleep = True
        self.moved = threading.Condition()
        self.outbox: Outbox = None  # type: ignore[assignment]  # until ``open``
        self.lost = 0
        self.rejected = 0
        # After a reload: who carries on with this journal's outbox.
        self.heir: Journal | None = None
        self._open_outbox = open_outbox
        self._lock = threading.Lock()
        self._queue: list[Item] = []
        self._bytes = 0
        self._owed = 0
        self._moved_by = 0
        self._max_events, self._max_bytes = queue_events, queue_bytes
        self._unconfirmed: deque[tuple[int, str]] = deque()

    def put(self, kind: str, chat: str | None, raw: bytes) -> bool:
        """Queue one event; False where it found no room and will be said by a gap."""
        with self._lock:
            if self.heir is not None:
                return self.heir.put(kind, chat, raw)
            if len(self._queue) >= self._max_events or self._bytes + len(raw) > self._max_bytes:
                self._owed += 1
                self.lost += 1
                return False
            self._queue.append((kind, chat, raw))
            self._bytes += len(raw)
        if self.asleep:
            self.asleep = False
            self.wake.set()
        return True

    @property
    def queued(self) -> int:
        return len(self._queue)

    def open(self) -> None:
        """Open the outbox, in the background thread."""
        self.outbox = self._open_outbox()
        self.tracks.restore(self.outbox.db.rows("SELECT * FROM fences"))
        self.ready.set()

    def drain(self) -> None:
        """Move what is queued into the outbox. Raises sqlite3.Error and keeps the queue then."""
        with self.outbox.lock:
            with self._lock:
                items, self._queue = self._queue, []
                size, self._bytes = self._bytes, 0
                owed, self._owed = self._owed, 0
            try:
                self._store(items, owed)
            except sqlite3.Error:
                with self._lock:
                    self._queue = items + self._queue
                    self._bytes += size
                raise
        with self.moved:
            self.moved.notify_all()

    def _store(self, items: list[Item], owed: int) -> None:
        if owed:
            self.outbox.owe(owed, "queue_full")
        if not items:
            self.outbox.settle(now_ms())
            return
        self._append(items)

    def _append(self, items: Sequence[Item], also: Sequence[Statement] = ()) -> None:
        chats = dict.fromkeys(chat for kind, chat, _ in items if kind in _FENCED and chat)
        saved = [self.tracks.saved(chat) for chat in chats]
        raws = [raw for _, _, raw in items]
        seqs = self.outbox.append(raws, now_ms(), also=[*also, *saved])
        for (kind, chat, _), seq in zip(items, seqs, strict=True):
            if seq is None:
                self.lost += 1
            if kind == "compaction.finished" and chat is not None:
                self._follow(chat, seq)

    def _follow(self, chat: str, seq: int | None) -> None:
        if seq is None:
            self.tracks.withdraw(chat)
        else:
            self._unconfirmed.append((seq, chat))

    def record(
        self, bodies: Sequence[bytes], also: Sequence[Statement] = (), *, durable: bool = True
    ) -> None:
        """Write events of our own behind everything queued, synced to the disk if ``durable``.

        Raises sqlite3.Error where the disk does not take it.
        """
        if self.heir is not None:
            self.heir.ready.wait(10)
            self.heir.record(bodies, also, durable=durable)
            return
        with self.outbox.lock:
            self.drain()
            self.outbox.append(bodies, now_ms(), control=True, durable=durable, also=also)
        self.wake.set()

    def file(self, items: Sequence[Item], also: Sequence[Statement]) -> None:
        """``put`` for a thread that may wait for the disk: with ``also``, in one transaction.

        Raises sqlite3.Error where the disk does not take it.
        """
        if self.heir is not None:
            self.heir.ready.wait(10)
            self.heir.file(items, also)
            return
        with self.outbox.lock:
            self.drain()
            self._append(items, also)
        self.wake.set()

    def bequeath(self, heir: Journal) -> None:
        """From now on everything goes to ``heir``; what is queued here still goes to the disk."""
        with self._lock:
            self.heir = heir

    def hand_over(self, heir: Journal) -> None:
        """What never reached an outbox of ours goes in front of what ``heir`` was given since."""
        with self._lock:
            items, self._queue = self._queue, []
            size, self._bytes = self._bytes, 0
            owed, self._owed = self._owed, 0
        heir.receive(items, size, owed)

    def receive(self, items: list[Item], size: int, owed: int) -> None:
        with self._lock:
            self._queue = items + self._queue
            self._bytes += size
            self._owed += owed

    def ack(self, upto: int, rejected: Iterable[Any] = ()) -> None:
        """The server's word: durable up to ``upto``, and which of those it will not have."""
        refused = {entry.get("seq") for entry in rejected if isinstance(entry, dict)}
        self.rejected += len(refused)
        self.outbox.ack(upto, now_ms())
        while self._unconfirmed and self._unconfirmed[0][0] <= upto:
            seq, chat = self._unconfirmed.popleft()
            if seq in refused:
                self.tracks.withdraw(chat)
            else:
                self.tracks.confirm(chat)
        with self.moved:
            self.moved.notify_all()

    def renumbered(self, by: Callable[[], None]) -> None:
        """Run a repair of the outbox that moves seqs; what is unconfirmed moves with them."""
        with self.outbox.lock:
            epoch, before = self.outbox.epoch, self.outbox.next_seq
            by()
            delta = self.outbox.next_seq - before
            self._moved_by += delta
            self._unconfirmed = deque((seq + delta, chat) for seq, chat in self._unconfirmed)
        if self.outbox.epoch != epoch:
            self.tracks.new_epoch()

    def settled(self, timeout: float) -> bool:
        """Wait until everything put so far is acked; False where that took too long."""
        deadline = time.monotonic() + timeout
        if not self.ready.wait(timeout):
            return False
        mark: int | None = None
        with self.moved:
            while mark is None or not self._reached(mark):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                if mark is None:
                    self.wake.set()
                    mark = self._mark()
                self.moved.wait(min(left, _POLL_S))
        return True

    def _mark(self) -> int | None:
        """The last seq given, less what repairs moved; None while something is queued."""
        # The lock is only tried: its holders may be waiting for ``moved``, which we hold.
        if not self.outbox.lock.acquire(blocking=False):
            return None
        try:
            return None if self._queue else self.outbox.next_seq - 1 - self._moved_by
        finally:
            self.outbox.lock.release()

    def _reached(self, mark: int) -> bool:
        if not self.outbox.lock.acquire(blocking=False):
            return False
        try:
            return self.outbox.acked >= mark + self._moved_by
        finally:
            self.outbox.lock.release()

    def below(self, events: int, timeout: float) -> bool:
        """Wait until fewer than ``events`` are queued or unacked; for senders that may wait."""
        deadline = time.monotonic() + timeout
        if not self.ready.wait(timeout):
            return False
        with self.moved:
            while self.queued + self.outbox.unacked >= events:
                left = deadline - time.monotonic()
                if left <= 0 or not self.moved.wait(left):
                    return False
        return True
