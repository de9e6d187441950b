"""What is not read, and the sentence that says why."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest
from pytest_django import Settings

from ctxhealth.imports import limits
from ctxhealth.store import queries, writes
from tests.imports.bring import Desk, events
from tests.readers.session import Session


def a_zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("session.jsonl", "{}")
    return file.getvalue()


def a_tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("session.jsonl"))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "The file is empty."),
        (b"  \n\n", "The file is empty."),
        (b"\xef\xbb\xbf", "The file is empty."),
        (a_zip(), "a zip archive: unpack it"),
        (a_tar(), "a tar archive"),
        (gzip.compress(a_zip()), "a zip archive"),
        (gzip.compress(gzip.compress(b"{}")), "a gzip archive inside a gzip archive"),
        ("{}".encode("utf-16"), "UTF-16 text: save it as UTF-8"),
        (b"\x80\x81\x82 words " * 3, "no UTF-8 text: byte 1 "),
        (b"caf\xe9 au lait, nothing more", "no UTF-8 text: byte 4 "),
        (b"words\x00words", "no UTF-8 text: byte 6 "),
        (b"<!DOCTYPE html><p>x", "a web page"),
        (b"%PDF-1.7 ...", "a PDF"),
        (b"SQLite format 3\x00", "a SQLite database"),
        (b"Dear sir,\nsomething is wrong.\n", "none of the session files that can be read"),
        (b'{"hello":"world"}\n', "none of the session files that can be read"),
        (b'{"info":{},"parts":[]}\n', "an opencode export, which cannot be read yet"),
    ],
)
def test_is_refused_with_what_it_is(desk: Desk, data: bytes, said: str) -> None:
    row = desk.bring(data, name="x")
    assert row.state == "refused", row.reason
    assert said in row.reason
    assert row.chat is None
    assert queries.agents_list() == []


def test_a_session_without_a_message_is_refused(desk: Desk) -> None:
    row = desk.bring(b'{"type":"summary","summary":"x","leafUuid":"y"}\n')
    assert row.state == "refused"
    assert "no row of it is a message" in row.reason


def test_a_packed_file_that_is_cut_off_keeps_what_came_before(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHUNK", 10_000)
    session = Session()
    for number in range(100):
        session.turn(f"m{number}", 20_000 + number)
    packed = gzip.compress(session.bytes())
    row = desk.bring(packed[: len(packed) // 2], name="session.jsonl.gz")
    assert row.state == "failed"
    assert "cut off" in row.reason and "What was read before stands." in row.reason
    assert row.chat is not None
    stored = len(events(row.chat))
    whole = desk.bring(packed, name="session.jsonl.gz")
    assert whole.chat == row.chat
    assert len([e for e in events(row.chat) if e.type == "model.replied"]) == 100
    assert len(events(row.chat)) > stored


def test_a_damaged_packed_file_is_told(desk: Desk) -> None:
    row = desk.bring(b"\x1f\x8b\x08\x00" + b"\x99" * 100, name="session.jsonl.gz")
    assert row.state == "failed"
    assert "damaged" in row.reason


def test_a_small_file_that_unpacks_to_a_huge_one_ends_at_the_limit(
    desk: Desk, settings: Settings
) -> None:
    settings.CTXHEALTH_IMPORT_MB = 1
    bomb = gzip.compress(Session().bytes() + b" " * 40_000_000)
    row = desk.bring(gzip.compress(b'{"type":"user","sessionId":"s"}\n') + bomb, name="bomb.gz")
    assert row.state in ("failed", "refused")
    assert "unpacks to more than 4 MB" in row.reason


def test_endless_empty_lines_end_soon(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BARREN", 1_000)
    session = Session()
    session.turn("m1", 20_000)
    row = desk.bring(session.bytes() + b"\n" * 5_000)
    assert row.state == "failed"
    assert "1,000 lines in a row hold nothing" in row.reason
    assert row.chat is not None


def test_archives_behind_each_other_are_one_file(desk: Desk) -> None:
    session = Session()
    session.turn("m1", 20_000)
    session.turn("m2", 21_000)
    lines = session.lines()
    packed = gzip.compress(lines[0] + b"\n") + gzip.compress(b"\n".join(lines[1:]) + b"\n")
    row = desk.bring(packed, name="session.jsonl.gz")
    assert (row.state, row.lines) == ("done", 4)


def test_a_line_longer_than_a_reader_holds_is_told_and_passed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxhealth.readers.lines.LineSplitter.__init__.__defaults__", (0, 4_000))
    session = Session()
    session.turn("m1", 20_000)
    lines = session.lines()
    lines.insert(1, b'{"type":"user","x":"' + b"y" * 5_000 + b'"}')
    row = desk.bring(b"\n".join(lines) + b"\n")
    assert row.state == "done"
    assert [(trouble.line, trouble.shape) for trouble in row.troubles] == [(2, "(5,023 bytes)")]


def test_the_queue_is_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxhealth.store.writes.imports.MOST_WAITING", 2)
    for number in range(2):
        assert desk.row(desk.queue(b"x%d" % number)).state == "queued"
    row = desk.row(desk.queue(b"x3"))
    assert row.state == "refused"
    assert "2 files wait already" in row.reason


def test_each_file_stands_in_the_audit_trail(desk: Desk) -> None:
    writes.import_queue(batch="b", name="mine.jsonl", size=3, by="ada", ip="10.0.0.9",
                        refused=writes.Refusal("It is empty."))  # fmt: skip
    entry = queries.audit_page(action="import.file").rows[0]
    assert (entry.by, entry.target, entry.result, entry.ip) == (
        "ada", "mine.jsonl", "refused", "10.0.0.9",
    )  # fmt: skip
    assert entry.reason == "It is empty."


def test_limits_are_bounded() -> None:
    assert limits.BATCH < 1_000
    assert limits.CHUNK <= 4 * 1024 * 1024
