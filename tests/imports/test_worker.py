"""The worker's life: files wait, a stop in the middle, a start again, a fault of our own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError

from ctxhealth.imports.errors import Stopped
from ctxhealth.imports.submitting import Submitting
from ctxhealth.imports.worker import ImportWorker
from ctxhealth.readers.claude_code import ClaudeCodeReader
from ctxhealth.store import queries, writes
from ctxhealth.store.models import Import
from ctxhealth.store.writer import Writer
from tests.imports.bring import Desk, content, events
from tests.readers.session import Session


def long_session(turns: int = 60) -> Session:
    session = Session()
    for number in range(turns):
        session.turn(f"m{number}", 20_000 + number)
    return session


def after(flushes: int) -> Callable[..., None]:
    """A flush that fails like a server that stops, after so many went well."""
    original, count = Submitting.flush, [0]

    def flush(self: Submitting) -> None:
        original(self)
        count[0] += 1
        if count[0] == flushes:
            raise Stopped

    return flush


def test_a_stop_in_the_middle_goes_on_at_the_next_start_without_doubling(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxhealth.imports.submitting.BATCH", 25)
    data = long_session().bytes()
    whole = desk.bring(data)
    log = content(whole.chat)
    session = long_session().bytes().replace(b"5e551011", b"5e551012")
    with monkeypatch.context() as stopping:
        stopping.setattr(Submitting, "flush", after(3))
        number = desk.queue(session)
        desk.worker.run_next()
    assert desk.row(number).state == "queued"
    assert 0 < len(events(desk.row(number).chat or _chat())) < len(log)
    again = ImportWorker(desk.spool)
    again.settle()
    again.run_next()
    row = desk.row(number)
    assert (row.state, row.resumed) == ("done", 1)
    assert [kind for kind, _ in content(row.chat)] == [kind for kind, _ in log]
    assert desk.spool.names() == set()


def _chat() -> int:
    found = queries.chat_find("claude-code (imported)", "5e551012-0000-4000-8000-000000000000")
    assert found is not None
    return found.id


def test_a_file_that_ends_the_server_every_time_is_given_up(desk: Desk) -> None:
    number = desk.queue(long_session(1).bytes())
    for _ in range(2):
        Import.objects.filter(id=number).update(state="reading", started_at=1)
        desk.worker.settle()
        assert desk.row(number).state == "queued"
    Import.objects.filter(id=number).update(state="reading")
    desk.worker.settle()
    row = desk.row(number)
    assert row.state == "interrupted"
    assert "bring it again" in row.reason
    assert desk.spool.names() == set()


def test_a_start_without_the_file_says_so(desk: Desk) -> None:
    number = desk.queue(long_session(1).bytes())
    for name in desk.spool.names():
        desk.spool.remove(name)
    desk.worker.settle()
    assert desk.row(number).state == "interrupted"
    assert "its file is gone" in desk.row(number).reason


def test_files_that_nobody_needs_are_removed_at_the_start(desk: Desk) -> None:
    _, file = desk.spool.begin()
    file.close()
    kept = desk.queue(b"x")
    desk.worker.settle()
    assert desk.spool.names() == {desk.row(kept).spooled}


def test_a_fault_of_the_reader_is_told_without_a_trace_and_the_next_file_is_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def feed(self: ClaudeCodeReader, line: bytes) -> list[Any]:
        raise ZeroDivisionError("secret words")

    with monkeypatch.context() as broken:
        broken.setattr(ClaudeCodeReader, "feed", feed)
        row = desk.bring(long_session(1).bytes())
    assert row.state == "failed"
    assert "ZeroDivisionError" in row.reason and "secret words" not in row.reason
    assert desk.bring(long_session(2).bytes(), name="next").state == "done"


def test_a_database_that_is_away_leaves_the_file_for_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: Any) -> Any:
        raise OperationalError("locked")

    number = desk.queue(long_session(1).bytes())
    with monkeypatch.context() as locked:
        locked.setattr(writes, "import_stream", away)
        with pytest.raises(OperationalError):
            desk.worker.run_next()
    assert desk.row(number).state == "queued"
    desk.worker.run_next()
    assert desk.row(number).state == "done"


@pytest.mark.django_db(transaction=True)
def test_the_thread_reads_what_is_poked_through_the_running_writer(
    desk: Desk, transactional_db: None
) -> None:
    writer = Writer()
    writer.start()
    worker = ImportWorker(desk.spool)
    worker.start()
    try:
        number = desk.queue(long_session(30).bytes())
        worker.poke()
        until = time.monotonic() + 20
        while desk.row(number).open and time.monotonic() < until:
            threading.Event().wait(0.02)
        assert desk.row(number).state == "done"
    finally:
        worker.stop()
        writer.stop()


def test_the_older_file_is_read_first(desk: Desk) -> None:
    first = desk.queue(long_session(1).bytes(), "first")
    second = desk.queue(long_session(2).bytes(), "second")
    desk.worker.run_next()
    assert (desk.row(first).state, desk.row(second).state) == ("done", "queued")


def test_progress_is_written_while_a_file_is_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxhealth.imports.limits.PROGRESS_S", 0.0)
    monkeypatch.setattr("ctxhealth.imports.limits.CHUNK", 20_000)
    told: list[int] = []
    original = writes.import_progress

    def progress(*, import_id: int, **counts: int) -> None:
        original(import_id=import_id, **counts)
        told.append(desk.row(import_id).bytes_read)

    monkeypatch.setattr("ctxhealth.imports.worker.writes.import_progress", progress)
    desk.bring(long_session(100).bytes())
    assert len(told) > 3
    assert told == sorted(told)
