"""What waits for the writer: submissions of agents and calls of services, both bounded."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from ctxhealth.store.intake import Intake, Receipt, StreamHandle
from ctxhealth.store.through import StoreBusy

Done = Callable[[Receipt], None]

QUEUE_EVENTS = 20_000
QUEUE_BYTES = 64 * 1024 * 1024
QUEUE_CALLS = 5_000
# What one turn of the loop may still bring after it saw that there was room.
ROOM_EVENTS = 5_000
ROOM_BYTES = 16 * 1024 * 1024


class Submission(NamedTuple):
    stream: StreamHandle
    conn_no: int | None
    intakes: list[Intake]
    done: Done
    size: int


class Call(NamedTuple):
    run: Callable[[], Any]
    future: Future[Any]
    asked: float


Job = Submission | Call


class Waiting:
    """Filled from any thread, emptied by the writer's. Calls go before submissions."""

    def __init__(self) -> None:
        self.events = self.bytes = 0
        self.closed = False
        self._submissions: queue.SimpleQueue[Submission | None] = queue.SimpleQueue()
        self._calls: deque[Call] = deque()
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        return len(self._calls)

    @property
    def has_room(self) -> bool:
        """Whether another frame of events would be taken."""
        return self.events < QUEUE_EVENTS - ROOM_EVENTS and self.bytes < QUEUE_BYTES - ROOM_BYTES

    def submit(self, submission: Submission) -> bool:
        """False (and nothing kept) where it is full."""
        count = len(submission.intakes)
        with self._lock:
            if self.closed or self._full(count, submission.size):
                return False
            self.events += count
            self.bytes += submission.size
        self._submissions.put(submission)
        return True

    def _full(self, events: int, size: int) -> bool:
        # A single submission always fits, or it could never be taken.
        if not self.events:
            return False
        return self.events + events > QUEUE_EVENTS or self.bytes + size > QUEUE_BYTES

    def call(self, run: Callable[[], Any], future: Future[Any]) -> None:
        if self.closed or len(self._calls) >= QUEUE_CALLS:
            future.set_exception(StoreBusy("too much waits to be written; try again"))
            return
        self._calls.append(Call(run, future, time.monotonic()))
        self._submissions.put(None)

    def close(self) -> None:
        """Take nothing more; what waits may still be gathered."""
        self.closed = True
        self._submissions.put(None)

    def gather(self, most: int, linger: float) -> list[Job]:
        """All that waits, calls first, at most one batch; blocks until there is something.

        ``linger``: seconds to wait for more where no call waits. Empty when woken for nothing.
        """
        first = None
        if not self._calls and not (self.closed and self._submissions.empty()):
            first = self._submissions.get()
        jobs: list[Job] = []
        while self._calls:
            jobs.append(self._calls.popleft())
        until = time.monotonic() + (0.0 if jobs else linger)
        count = self._take(jobs, first)
        while count < most:
            left = until - time.monotonic()
            try:
                waiting = (
                    self._submissions.get(timeout=left)
                    if left > 0
                    else self._submissions.get_nowait()
                )
            except queue.Empty:
                break
            count += self._take(jobs, waiting)
        return jobs

    def _take(self, jobs: list[Job], waiting: Submission | None) -> int:
        if waiting is None:
            return 0
        jobs.append(waiting)
        count = len(waiting.intakes)
        with self._lock:
            self.events -= count
            self.bytes -= waiting.size
        return count

    def drop(self) -> None:
        """Forget submissions, unacknowledged; tell callers."""
        while not self._submissions.empty():
            self._submissions.get_nowait()
        with self._lock:
            self.events = self.bytes = 0
        while self._calls:
            finish(self._calls.popleft(), None, StoreBusy("the server stops"))


def finish(job: Call, result: Any, error: BaseException | None) -> None:
    """Answer a caller, if it still waits."""
    if not job.future.set_running_or_notify_cancel():
        return
    if error is not None:
        job.future.set_exception(error)
    else:
        job.future.set_result(result)


def merged(receipts: list[Receipt]) -> Receipt:
    """One answer for a submission that was stored event by event."""
    return receipts[-1]._replace(
        before=receipts[0].before,
        stored=sum(receipt.stored for receipt in receipts),
        duplicates=sum(receipt.duplicates for receipt in receipts),
        conflicting=tuple(seq for receipt in receipts for seq in receipt.conflicting),
        rejected=tuple(entry for receipt in receipts for entry in receipt.rejected),
        resend=next((receipt.resend for receipt in receipts if receipt.resend), None),
    )
