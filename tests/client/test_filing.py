"""A sender's own place goes to the disk with its events, and its commands keep their fence."""

from __future__ import annotations

from pathlib import Path

from ctxhealth.client.filing import Filing
from tests.client.conftest import Make
from tests.client.server import Server, eventually

_TABLE = "CREATE TABLE IF NOT EXISTS mine(place INTEGER)"
DONE = {"type": "compaction.finished", "chat": "c", "attempt": "a", "reported": "done"}


def _filing(make: Make, tmp_path: Path, **options: object) -> Filing:
    reporter = make(outbox=str(tmp_path / "outbox"), **options)
    reporter.on("compact_summarize", lambda context: {"after": 1})
    filing = Filing(reporter)
    assert filing.ready(10)
    filing.tell((), [(_TABLE, ())])
    return filing


def test_a_command_is_held_against_what_was_told(
    make: Make, server: Server, tmp_path: Path
) -> None:
    filing = _filing(make, tmp_path)
    filing.tell([{"type": "chat.opened", "chat": "c"}, DONE], [("INSERT INTO mine VALUES (7)", ())])
    eventually(lambda: server.events("compaction.finished"))
    server.command("late", "compact_summarize", expected={"compaction": 0})
    server.command("right", "compact_summarize", expected={"compaction": 1})
    assert server.ended("late")["reason"] == "stale"
    assert server.ended("right")["state"] == "succeeded"
    assert filing.rows("SELECT place FROM mine") == [(7,)]


def test_what_finds_no_room_is_said_and_the_place_is_kept(
    make: Make, server: Server, tmp_path: Path
) -> None:
    server.mute = True
    filing = _filing(make, tmp_path, max_events=3)
    for number in range(6):
        note = {"type": "note", "chat": "c", "text": f"{number}"}
        filing.tell([note], [("INSERT INTO mine VALUES (?)", (number,))])
    assert len(filing.rows("SELECT place FROM mine")) == 6
    server.mute = False
    server.drop()
    assert eventually(lambda: server.events("gap"))[0]["count"] == 3
