"""The outbox: numbers without holes, bounds, replay, and files that are broken or taken."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ctxhealth.client.database import InUse
from ctxhealth.client.epochs import mint_epoch
from ctxhealth.client.outbox import Bounds, Outbox


def _raw(text: str) -> bytes:
    return b'{"type":"note","text":"%b"}' % text.encode()


def _bodies(outbox: Outbox, start: int = 1) -> list[bytes]:
    return [raw for _, raw in outbox.read(start, 1_000, 1_000_000)]


def test_numbers_go_on_over_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "box")
    first = Outbox(path)
    assert first.append([_raw("a"), _raw("b")], 1) == [1, 2]
    epoch = first.epoch
    first.close()
    second = Outbox(path)
    assert second.append([_raw("c")], 1) == [3]
    assert (second.epoch, _bodies(second)) == (epoch, [_raw("a"), _raw("b"), _raw("c")])
    second.close()


def test_memory_mints_a_new_epoch_each_time() -> None:
    first, second = Outbox(None), Outbox(None)
    assert first.epoch != second.epoch
    first.close()
    second.close()


def test_an_epoch_is_a_uuid_of_version_seven_that_sorts_by_time() -> None:
    early, late = mint_epoch(1_000, b"\xff" * 10), mint_epoch(2_000, b"\x00" * 10)
    assert early < late
    assert early[14] == "7" and early[19] in "89ab"


def test_what_finds_no_room_is_counted_once_in_a_gap_at_the_next_seq() -> None:
    outbox = Outbox(None, Bounds(max_events=10))
    seqs = outbox.append([_raw(str(n)) for n in range(25)], 1)
    assert seqs == [*range(1, 11), *[None] * 15]
    assert outbox.append([_raw("also lost")], 1) == [None]
    outbox.ack(10, 1)
    assert outbox.append([_raw("after")], 2) == [12]
    gap, after = _bodies(outbox, 11)
    assert b'"count":16' in gap and b'"outbox_full"' in gap and after == _raw("after")
    outbox.close()


def test_bytes_are_bounded_too() -> None:
    outbox = Outbox(None, Bounds(max_bytes=1_000))
    seqs = outbox.append([_raw("x" * 80)] * 20, 1)
    kept = [seq for seq in seqs if seq]
    assert kept == list(range(1, len(kept) + 1)) and 7 <= len(kept) <= 9
    outbox.close()


def test_a_loss_is_said_even_if_nothing_else_is_ever_reported() -> None:
    outbox = Outbox(None, Bounds(max_events=5))
    outbox.append([_raw("x")] * 9, 1)
    outbox.settle(1)
    assert outbox.next_seq == 6
    outbox.ack(5, 1)
    outbox.settle(2)
    assert b'"count":4' in _bodies(outbox, 6)[0]
    outbox.close()


def test_a_loss_is_remembered_over_a_restart(tmp_path: Path) -> None:
    path, bounds = str(tmp_path / "box"), Bounds(max_events=2)
    first = Outbox(path, bounds)
    first.append([_raw("x")] * 5, 1)
    first.close()
    second = Outbox(path, bounds)
    second.ack(2, 1)
    second.settle(1)
    assert b'"count":3' in _bodies(second, 3)[0]
    second.close()


def test_a_commands_progress_always_finds_room() -> None:
    outbox = Outbox(None, Bounds(max_events=2))
    outbox.append([_raw("x")] * 5, 1)
    assert outbox.append([_raw("result")], 1, control=True) == [3]
    outbox.close()


def test_acked_events_stay_for_the_replay_window_in_time_and_in_bytes() -> None:
    outbox = Outbox(None, Bounds(replay_ms=1_000, replay_bytes=10_000))
    outbox.append([_raw("old")], 0)
    outbox.append([_raw("young")], 5_000)
    outbox.ack(2, 5_500)
    assert outbox.db.one("SELECT min(seq) FROM events") == 2
    outbox.append([_raw("x" * 900)] * 30, 5_500)
    outbox.ack(32, 5_500)
    held = outbox.db.one("SELECT sum(length(body)) FROM events")
    assert 9_000 <= held <= 10_000
    outbox.close()


def test_what_is_not_acked_is_never_pruned() -> None:
    outbox = Outbox(None, Bounds(replay_ms=0, replay_bytes=0))
    outbox.append([_raw("a"), _raw("b")], 0)
    outbox.ack(1, 10**9)
    assert _bodies(outbox, 2) == [_raw("b")]
    outbox.close()


def test_a_rewind_sends_what_is_held_and_gaps_for_the_rest_the_same_each_time() -> None:
    outbox = Outbox(None, Bounds(replay_bytes=len(_raw("1")) * 3))
    outbox.append([_raw(str(n)) for n in range(1, 10)], 1)
    outbox.ack(9, 1)
    outbox.rewind(2, 50)
    first = outbox.read(3, 100, 100_000)
    assert [seq for seq, _ in first] == list(range(3, 10))
    assert [raw for _, raw in first][-3:] == [_raw("7"), _raw("8"), _raw("9")]
    assert all(b'"restore"' in raw for _, raw in first[:-3])
    assert outbox.read(3, 100, 100_000) == first
    assert (outbox.acked, outbox.unacked) == (2, 7)
    outbox.ack(7, 10**12)
    assert [raw for _, raw in outbox.read(8, 100, 100_000)] == [_raw("8"), _raw("9")]
    outbox.close()


def test_a_full_outbox_waits_for_a_tenth_to_be_free_so_that_a_burst_is_one_gap() -> None:
    outbox = Outbox(None, Bounds(max_events=100))
    outbox.append([_raw("x")] * 101, 1)
    outbox.ack(5, 1)
    assert outbox.append([_raw("too soon")], 1) == [None]
    outbox.ack(20, 1)
    assert outbox.append([_raw("now")], 1) == [102]
    assert b'"count":2' in _bodies(outbox, 101)[0]
    outbox.close()


def test_a_durable_append_is_synced_to_the_disk_and_others_are_not(tmp_path: Path) -> None:
    outbox = Outbox(str(tmp_path / "box"))
    said: list[str] = []
    outbox.db._db.set_trace_callback(said.append)
    outbox.append([_raw("event")], 1)
    assert not any("synchronous" in sql for sql in said)
    outbox.append([_raw("started")], 1, durable=True)
    order = [sql for sql in said if "synchronous" in sql or sql == "COMMIT"]
    assert order[-3:] == ["PRAGMA synchronous=FULL", "COMMIT", "PRAGMA synchronous=NORMAL"]
    outbox.close()


def test_a_read_is_bounded_by_events_and_bytes_and_gives_at_least_one() -> None:
    outbox = Outbox(None)
    outbox.append([_raw("x" * 100)] * 10, 1)
    assert len(outbox.read(1, 4, 10**6)) == 4
    assert len(outbox.read(1, 10, 400)) == 2
    assert len(outbox.read(1, 10, 1)) == 1
    assert outbox.read(11, 10, 10**6) == []
    outbox.close()


def test_a_new_stream_keeps_the_unacked_events_in_order_behind_a_note() -> None:
    outbox = Outbox(None)
    outbox.append([_raw("a"), _raw("b"), _raw("c")], 1)
    outbox.ack(1, 1)
    outbox.restart("new-epoch", 9, "why")
    note, *rest = _bodies(outbox)
    assert b'"why"' in note and rest == [_raw("b"), _raw("c")]
    assert outbox.append([_raw("d")], 9) == [4]
    assert (outbox.epoch, outbox.acked) == ("new-epoch", 0)
    outbox.close()


def test_a_repair_survives_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "box")
    first = Outbox(path)
    first.append([_raw("a"), _raw("b")], 1)
    first.sent_high = 1
    first.skip_to(40)
    assert first.read(41, 9, 9_999) == [(41, _raw("b"))]
    first.close()
    second = Outbox(path)
    assert (second.next_seq, second.acked) == (42, 40)
    second.close()


def test_a_file_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "box")
    held = Outbox(path)
    with pytest.raises(InUse):
        Outbox(path)
    held.close()
    Outbox(path).close()


def test_a_file_that_is_no_database_is_set_aside_and_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "box"
    path.write_bytes(b"this is not a database, but somebody's letter" * 100)
    outbox = Outbox(str(path))
    assert outbox.db.set_aside == f"{path}.unreadable-1"
    assert (tmp_path / "box.unreadable-1").read_bytes().startswith(b"this is not")
    assert outbox.append([_raw("a")], 1) == [1]
    outbox.close()


def test_only_its_owner_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "box"
    Outbox(str(path)).close()
    assert path.stat().st_mode & 0o077 == 0


def test_a_full_disk_keeps_numbers_and_content_as_they_were(tmp_path: Path) -> None:
    outbox = Outbox(str(tmp_path / "box"))
    outbox.append([_raw("a")], 1)
    pages = outbox.db.one("PRAGMA page_count")
    outbox.db.one(f"PRAGMA max_page_count={pages}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        outbox.append([_raw("x" * 60_000)], 1)
    outbox.db.one("PRAGMA max_page_count=100000")
    assert outbox.append([_raw("b")], 1) == [2]
    assert _bodies(outbox) == [_raw("a"), _raw("b")]
    outbox.close()
