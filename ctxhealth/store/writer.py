"""The one writer: a thread that commits everything, in batches, and answers after the commit.

Submissions of agents and calls of services wait in two queues; calls go first. One transaction
takes all that waits, up to ``BATCH`` events. A full disk or a lost database answers nobody and is
tried again; an event that cannot be stored is found by bisection and leaves a tombstone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection, transaction

from ctxhealth.store import chat_rows, through, unit, wal
from ctxhealth.store.clock import now_ms
from ctxhealth.store.counters import WriterCounters
from ctxhealth.store.intake import Intake, Receipt, StreamHandle, poison_of
from ctxhealth.store.states import StateCache
from ctxhealth.store.through import StoreBusy
from ctxhealth.store.unit import ChatChange, CommandChange, Committed, Unit
from ctxhealth.store.waiting import Call, Done, Job, Submission, Waiting, finish, merged

P = ParamSpec("P")
R = TypeVar("R")
BATCH = 1_000
# Above this rate a short wait gathers more events for one fsync; below it nobody waits.
LINGER_RATE = 500
LINGER_S = 0.0005
RATE_WINDOW_S = 0.25
RETRY_S = (0.05, 0.1, 0.25, 0.5, 1.0)
CALL_SECONDS = 30
# A press must not wait for a database that is gone; events do.
CALL_GIVES_UP_S = 5.0
# How long after it was told to stop the writer still tries a database that is away.
STOP_TRIES_S = 2.0
# A first failure that came at once is tried again in silence.
BUSY_AFTER_S = 1.0
TRANSIENT = (OperationalError, InterfaceError)
_LOG = logging.getLogger(__name__)

__all__ = ["Call", "StoreBusy", "Submission", "Writer"]


class _Tainted(Exception):
    """A call failed after it had appended events: the whole transaction must be redone."""


class Writer:
    """``on_commit``, ``on_commands``, ``on_revoked`` and ``on_busy`` are called on its thread."""

    def __init__(self, *, cache: int = 2_000, batch: int = BATCH) -> None:
        self.counters = WriterCounters()
        self.states = StateCache(cache)
        self.on_commit_hooks: list[Callable[[list[ChatChange]], None]] = []
        self.on_command_hooks: list[Callable[[list[CommandChange]], None]] = []
        self.on_revoked_hooks: list[Callable[[list[int]], None]] = []
        self.on_busy_hooks: list[Callable[[str | None, int], None]] = []
        self.busy: str | None = None
        self.last_commit: float | None = None
        self._batch = batch
        self._waiting = Waiting()
        self._rate = 0.0
        self._measured = time.monotonic()
        self._fresh = True
        self._watch = wal.Watch()
        self._stopping = False
        self._stop_asked = 0.0
        self._thread: threading.Thread | None = None
        self._checkpointer: wal.Checkpointer | None = None

    # Life.

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def queued(self) -> tuple[int, int, int]:
        """(events, bytes, calls) that wait."""
        return self._waiting.events, self._waiting.bytes, self._waiting.calls

    def start(self) -> None:
        """Start the thread and become the process's writer."""
        if self.running:
            return
        self._stopping = False
        self._waiting = Waiting()
        self._thread = threading.Thread(target=self._main, name="ctxhealth-writer", daemon=True)
        self._thread.start()
        if connection.vendor == "sqlite":
            self._checkpointer = wal.Checkpointer(self.counters)
            self._checkpointer.start()
        through.install(self)

    def stop(self, *, drain: bool = True, timeout: float = 10.0) -> None:
        """Write what waits (or drop it, unacknowledged), store the states, end the thread."""
        thread = self._thread
        if thread is None:
            return
        if not drain:
            self._waiting.drop()
        self._stop_asked = time.monotonic()
        self._stopping = True
        self._waiting.close()
        if thread is not threading.current_thread():
            thread.join(timeout)
        if self._checkpointer is not None:
            self._checkpointer.stop()
        if through.installed() is self:
            through.install(None)
        self._thread = None

    # What others ask of it.

    def submit_events(
        self, stream: StreamHandle, conn_no: int | None, events: list[Intake], done: Done
    ) -> bool:
        """Queue events of one stream; False (and nothing kept) where the queue is full.

        ``done`` is called on the writer's thread after the commit, never before.
        """
        size = sum([len(intake.body) for intake in events])
        taken = self._waiting.submit(Submission(stream, conn_no, events, done, size))
        self.counters.refused_full += not taken
        return taken

    @property
    def has_room(self) -> bool:
        """Whether another frame of events would be taken."""
        return self._waiting.has_room

    def enqueue(self, fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Queue a call; its future ends after the commit."""
        future: Future[R] = Future()
        self._waiting.call(lambda: fn(*args, **kwargs), future)
        return future

    def call(self, fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run ``fn`` in the writer's transaction; its result after the commit, or what it raised.

        Raises StoreBusy where the database does not answer.
        """
        try:
            return self.enqueue(fn, *args, **kwargs).result(CALL_SECONDS)
        except TimeoutError:
            raise StoreBusy("the database did not answer in time") from None

    # The thread.

    def _main(self) -> None:
        try:
            while True:
                jobs = self._gather()
                if jobs:
                    self._commit(jobs)
                elif self._stopping:
                    break
                self._bound_wal()
            if self.busy is None:
                self._save_states()
        except BaseException:
            _LOG.exception("the writer ended")
            raise
        finally:
            connection.close()

    def _gather(self) -> list[Job]:
        return self._waiting.gather(self._batch, LINGER_S if self._rate > LINGER_RATE else 0.0)

    def _commit(self, jobs: list[Job]) -> None:
        """Commit these jobs, whatever it takes; each is answered exactly once."""
        tries, began = 0, time.monotonic()
        while jobs:
            try:
                answers, committed = self._transaction(jobs)
            except TRANSIENT as error:
                tries += 1
                jobs = self._wait_and_retry(jobs, error, tries, time.monotonic() - began)
                continue
            except Exception as error:
                self._split(jobs, error)
                return
            self._recovered()
            self._answer(answers)
            self._publish(committed)
            return

    def _transaction(
        self, jobs: list[Job]
    ) -> tuple[list[tuple[Job, Any, BaseException | None]], Committed]:
        began = time.monotonic()
        work = Unit(self.states, now_ms())
        unit.enter(work)
        try:
            if self._fresh:
                wal.leave_checkpoints(connection)
                self._watch = wal.Watch()
                self._fresh = False
            with transaction.atomic():
                work.alone = self._watch.alone(connection)
                submissions = [job for job in jobs if isinstance(job, Submission)]
                work.prepare((job.stream, job.intakes) for job in submissions)
                answers = [self._run(work, job) for job in jobs]
                committed = work.finish()
                surplus = self.states.surplus()
                self.counters.checkpoints += chat_rows.checkpoint(surplus)
        except BaseException:
            work.abandon()
            raise
        finally:
            unit.enter(None)
        for held in surplus:
            self.states.drop(held.pk)
        self._measure(work, jobs, time.monotonic() - began)
        return answers, committed

    def _run(self, work: Unit, job: Job) -> tuple[Job, Any, BaseException | None]:
        if isinstance(job, Submission):
            return job, work.submit(job.stream, job.conn_no, job.intakes), None
        work.flush_events()
        before = work.appended
        try:
            with transaction.atomic():
                return job, job.run(), None
        except TRANSIENT:
            raise
        except Exception as error:
            if work.appended != before:
                raise _Tainted from error
            return job, None, error

    def _split(self, jobs: list[Job], error: Exception) -> None:
        """Something in here cannot be stored: find it, store the rest."""
        self.counters.bisections += 1
        if len(jobs) > 1:
            half = len(jobs) // 2
            self._commit(jobs[:half])
            self._commit(jobs[half:])
            return
        job = jobs[0]
        if isinstance(job, Call):
            finish(job, None, error.__cause__ if isinstance(error, _Tainted) else error)
            return
        self._bury(job, error)

    def _bury(self, job: Submission, error: Exception) -> None:
        """One submission fails: its events one by one, the one to blame as a tombstone."""
        if len(job.intakes) == 1:
            intake = job.intakes[0]
            if intake.rejected is not None:
                # Not even the tombstone can be stored: this is no property of the event.
                self._commit_later(job, error)
                return
            self.counters.poisoned += 1
            _LOG.error("event %d of stream %d cannot be stored", intake.seq, job.stream.stream,
                       exc_info=error)  # fmt: skip
            grave = poison_of(intake, f"the server failed on it: {type(error).__name__}", now_ms())
            self._commit([job._replace(intakes=[grave])])
            return
        receipts: list[Receipt] = []
        for intake in job.intakes:
            self._commit([job._replace(intakes=[intake], done=receipts.append)])
        _call(self.counters, job.done, merged(receipts))

    def _commit_later(self, job: Submission, error: Exception) -> None:
        _LOG.error("a tombstone cannot be stored; trying again", exc_info=error)
        while not self._stopping:
            time.sleep(RETRY_S[-1])
            try:
                answers, committed = self._transaction([job])
            except Exception:
                self._tell_busy("the server cannot store events", 1_000)
                continue
            self._recovered()
            self._answer(answers)
            self._publish(committed)
            return

    def _wait_and_retry(
        self, jobs: list[Job], error: Exception, tries: int, waited: float
    ) -> list[Job]:
        """The database is locked, full or away: give up on calls in time, never on events."""
        self.counters.retries += 1
        connection.close()
        self._fresh = True
        pause = RETRY_S[min(tries, len(RETRY_S)) - 1]
        if tries > 1 or waited > BUSY_AFTER_S:
            _LOG.warning("cannot write (%s); trying again", str(error)[:200])
            self._tell_busy(_reason(error), int(pause * 1_000))
        kept: list[Job] = []
        for job in jobs:
            late = isinstance(job, Call) and time.monotonic() - job.asked > CALL_GIVES_UP_S
            if isinstance(job, Call) and (late or self._stopping):
                finish(job, None, StoreBusy("the database does not answer"))
            elif not (self._stopping and time.monotonic() > self._stop_asked + STOP_TRIES_S):
                kept.append(job)
        if kept:
            time.sleep(pause)
        return kept

    def _recovered(self) -> None:
        self.last_commit = time.monotonic()
        if self.busy is not None:
            self._tell_busy(None, 0)

    def _tell_busy(self, reason: str | None, retry_ms: int) -> None:
        self.busy = reason
        for hook in self.on_busy_hooks:
            _call(self.counters, hook, reason, retry_ms)

    def _answer(self, answers: Iterable[tuple[Job, Any, BaseException | None]]) -> None:
        for job, result, error in answers:
            if isinstance(job, Submission):
                self._count(result)
                _call(self.counters, job.done, result)
            else:
                self.counters.calls += 1
                finish(job, result, error)

    def _publish(self, committed: Committed) -> None:
        for changes, hooks in (
            (committed.chats, self.on_commit_hooks),
            (committed.commands, self.on_command_hooks),
            (committed.revoked, self.on_revoked_hooks),
        ):
            if changes:
                for hook in hooks:
                    _call(self.counters, hook, changes)

    def _count(self, receipt: Receipt) -> None:
        counters = self.counters
        counters.duplicates += receipt.duplicates
        counters.conflicts += receipt.conflicts
        counters.rejected += len(receipt.rejected)
        counters.gaps_seen += receipt.resend is not None
        counters.replaced += receipt.replaced

    def _measure(self, work: Unit, jobs: list[Job], seconds: float) -> None:
        counters = self.counters
        counters.events += work.stored
        counters.batches += 1
        counters.seconds += seconds
        counters.largest_batch = max(counters.largest_batch, work.stored)
        # Arrivals over the last quarter of a second or so.
        now = time.monotonic()
        passed = max(now - self._measured, 1e-4)
        self._measured = now
        self._rate += (work.stored / passed - self._rate) * min(1.0, passed / RATE_WINDOW_S)

    # Ends.

    def _bound_wal(self) -> None:
        if self.counters.wal_pages > wal.LARGE_PAGES and connection.vendor == "sqlite":
            self.counters.wal_pages = 0
            wal.restart(connection)

    def _save_states(self) -> None:
        try:
            with transaction.atomic():
                self.counters.checkpoints += chat_rows.checkpoint(self.states)
        except TRANSIENT:
            _LOG.warning("states were not stored; the next start folds them again")
        self.states.clear()


def _call(counters: WriterCounters, hook: Callable[..., None], *args: Any) -> None:
    """A callback of somebody else's must not end the writer."""
    try:
        hook(*args)
    except Exception:
        counters.callback_errors += 1
        _LOG.exception("a callback of the writer failed")


def _reason(error: Exception) -> str:
    text = str(error).lower()
    if "full" in text:
        return "the server's disk is full"
    return "the server's database is locked" if "locked" in text else "the database is away"
