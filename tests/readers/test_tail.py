"""``ctxhealth tail`` over a real socket: whole files, growing ones, damaged ones, again."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.cli import main
from tests.client.server import TOKEN, Server, eventually
from tests.readers.conftest import Command, interrupt
from tests.readers.gemini_session import GeminiSession
from tests.readers.pi_session import PiSession
from tests.readers.rollout import Rollout
from tests.readers.session import SESSION, Session, call, loads, text, thinking

Start = Callable[..., "subprocess.Popen[str]"]


def replies(server: Server) -> list[int]:
    return loads(server.events())


def _has(server: Server, count: int) -> bool:
    return len(replies(server)) >= count


def test_a_whole_file_arrives_and_is_shown_where_it_is(
    server: Server, command: Command, tmp_path: Path, capsys: Any
) -> None:
    session = Session()
    session.turn("m1", 150_000)
    session.boundary(150_100)
    session.turn("m2", 40_000)
    assert command("tail", session.write(tmp_path / "s.jsonl")) == 0
    assert replies(server) == [150_000, 40_000]
    assert {event["chat"] for event in server.events()} == {SESSION}
    hello = server.hellos[0]
    assert (hello["runtime"], hello["caps"]["read_only"]) == ("claude-code", True)
    assert hello["caps"]["commands"] == []
    out = capsys.readouterr().out
    assert "2 requests, 1 compaction, 0 unreadable lines" in out
    assert f"{server.url}/?q={SESSION}" in out


@pytest.mark.parametrize("product", ["codex", "pi"])
def test_the_agent_is_named_after_the_product_whose_file_it_is(
    product: str, server: Server, tmp_path: Path
) -> None:
    made: Rollout | PiSession = Rollout() if product == "codex" else PiSession()
    made.turn(9_000)
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join(made.lines()) + b"\n")
    common = ["--url", server.url, "--token", TOKEN, "--state", str(tmp_path / "state")]
    assert main(["tail", str(path), *common]) == 0
    hello = server.hellos[0]
    id = server.events()[0]["chat"][:8]
    assert re.fullmatch(rf"{product} {id} \([a-z2-9]{{4}}\)", hello["agent"])
    assert hello["runtime"] == product
    assert replies(server) == [9_000]
    before = len(server.events())
    assert main(["tail", str(path), *common]) == 0
    assert len(server.events()) == before


def test_a_file_that_was_sent_is_not_sent_again_and_what_is_new_is(
    server: Server, command: Command, tmp_path: Path, capsys: Any
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    path = session.write(tmp_path / "s.jsonl")
    assert command("tail", path) == 0
    before = server.events()
    assert command("tail", path) == 0
    assert server.events() == before
    assert "Nothing new" in capsys.readouterr().out
    session.turn("m2", 21_000)
    session.write(path)
    assert command("tail", path) == 0
    assert replies(server) == [20_000, 21_000]
    assert len(server.events("chat.opened")) == 1
    assert len({hello["epoch"] for hello in server.hellos}) == 1


def test_again_sends_everything_anew(server: Server, command: Command, tmp_path: Path) -> None:
    session = Session()
    session.turn("m1", 20_000)
    path = session.write(tmp_path / "s.jsonl")
    assert command("tail", path) == 0
    assert command("tail", path, "--again") == 0
    assert replies(server) == [20_000, 20_000]


def test_a_torn_last_line_waits_for_its_end(
    server: Server, command: Command, tmp_path: Path, capsys: Any
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    session.turn("m2", 21_000)
    raw = session.bytes()
    path = tmp_path / "s.jsonl"
    path.write_bytes(raw[:-40])
    assert command("tail", path) == 0
    assert replies(server) == [20_000]
    assert "The last line is not finished" in capsys.readouterr().out
    path.write_bytes(raw)
    assert command("tail", path) == 0
    assert replies(server) == [20_000, 21_000]
    assert server.events("note") == []


def test_a_whole_last_line_needs_no_newline(
    server: Server, command: Command, tmp_path: Path
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    path = tmp_path / "s.jsonl"
    path.write_bytes(session.bytes().rstrip(b"\n"))
    assert command("tail", path) == 0
    assert replies(server) == [20_000]
    path.write_bytes(session.bytes())
    assert command("tail", path) == 0
    assert replies(server) == [20_000]


def test_unreadable_lines_are_counted_and_shown(
    server: Server, command: Command, tmp_path: Path, capsys: Any
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    path = session.write(tmp_path / "s.jsonl")
    path.write_bytes(path.read_bytes() + b"rubbish\n\n\x00\x00\x00\n" + b'{"type":"us\n')
    assert command("tail", path) == 0
    notes = server.events("note")
    assert sum(note["count"] for note in notes) == 3
    assert {note["code"] for note in notes} == {"unreadable_line"}
    assert "3 unreadable lines" in capsys.readouterr().out


def test_the_files_of_sub_agents_come_with_it(
    server: Server, command: Command, tmp_path: Path, capsys: Any
) -> None:
    session, side = Session(), Session()
    session.prompt()
    session.reply("m1", 30_000, call("t1", "Task"), stop="tool_use")
    side.number = 500
    side.prompt("Look.", isSidechain=True, agentId="a1")
    side.answer("s1", 9_000, isSidechain=True, agentId="a1")
    data = {"type": "agent_progress", "agentId": "a1", "message": side.rows[0]}
    session.row("progress", data=data, parentToolUseID="t1")
    session.result("t1")
    session.answer("m2", 31_000)
    path = session.write(tmp_path / f"{SESSION}.jsonl")
    side.write(tmp_path / SESSION / "subagents" / "agent-a1.jsonl")
    assert command("tail", path) == 0
    opened = {event["chat"]: event.get("parent") for event in server.events("chat.opened")}
    assert opened == {SESSION: None, f"{SESSION}:agent-a1": SESSION}
    assert sorted(replies(server)) == [9_000, 30_000, 31_000]
    assert "Sub-agents: 1." in capsys.readouterr().out


def test_the_chat_can_be_given_another_id_and_the_text_can_stay_here(
    server: Server, command: Command, tmp_path: Path
) -> None:
    session = Session()
    session.prompt("The key is sk-abcdefghijklmnopqrstuvwxyz012345 and the garden is green.")
    session.answer("m1", 20_000)
    path = session.write(tmp_path / "s.jsonl")
    assert command("tail", path, "--chat", "garden") == 0
    excerpts = [item["excerpt"] for item in server.events("message.added")]
    assert "sk-abc" not in str(server.events())
    assert excerpts[0] == "The key is [redacted: api key] and the garden is green."
    assert {event["chat"] for event in server.events()} == {"garden"}
    assert command("tail", path, "--again", "--text", "none") == 0
    assert "excerpt" not in server.events("message.added")[-1]
    assert server.events("message.added")[-1]["chars"] == 8


def test_a_growing_file_is_followed(server: Server, start: Start, tmp_path: Path) -> None:
    session = Session()
    session.turn("m1", 20_000)
    path = session.write(tmp_path / "s.jsonl")
    process = start("tail", path, "--follow")
    eventually(lambda: replies(server) == [20_000], "the first reply")
    session.prompt("And bed 2?")
    session.reply("m2", 21_000, text("Onions."), stop="end_turn")
    whole = session.bytes()
    # Torn in the middle of a line, then completed: one reply, no trouble.
    grown = whole[: -len(session.lines()[-1]) // 2]
    path.write_bytes(grown)
    eventually(lambda: len(server.events("turn.started")) == 2, "the second prompt")
    assert replies(server) == [20_000]
    path.write_bytes(whole)
    # No further row says that the reply is whole: told once nothing more comes.
    eventually(lambda: replies(server) == [20_000, 21_000], "the second reply")
    eventually(lambda: len(server.events("turn.ended")) == 2, "the end of the turn")
    code, out, err = interrupt(process)
    assert (code, err) == (0, "")
    assert "2 requests" in out
    assert server.events("note") == []


def test_a_reply_without_a_stop_reason_is_shown_after_a_restart_and_grows_into_one(
    server: Server, start: Start, tmp_path: Path
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    session.prompt()
    session.reply("m2", 21_000, thinking("hm"))
    path = session.write(tmp_path / "s.jsonl")
    process = start("tail", path, "--follow")
    eventually(lambda: len(server.events("turn.started")) == 2, "the second prompt")
    process.kill()
    process.wait()
    session.reply("m2", 21_000, text("Let me look."))
    session.write(path)
    process = start("tail", path, "--follow")
    eventually(lambda: replies(server) == [20_000, 21_000], "the reply as far as it came")
    process.kill()
    process.wait()
    session.reply("m2", 21_000, call("t1"))
    session.result("t1")
    session.answer("m3", 22_000)
    session.write(path)
    start("tail", path, "--follow")
    eventually(lambda: replies(server) == [20_000, 21_000, 22_000], "the rest of the turn")
    assert len(server.events("turn.started")) == 2
    outcomes = [event["outcome"] for event in server.events("turn.ended")]
    assert outcomes == ["answered", "answered"]


def test_a_file_cut_and_written_again_is_not_counted_twice(
    server: Server, start: Start, tmp_path: Path
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    session.turn("m2", 21_000)
    path = session.write(tmp_path / "s.jsonl")
    start("tail", path, "--follow")
    eventually(lambda: replies(server) == [20_000, 21_000], "both replies")
    path.write_bytes(b"")
    session.turn("m3", 22_000)
    session.write(path)
    eventually(lambda: replies(server) == [20_000, 21_000, 22_000], "the third reply")
    assert len(server.events("chat.opened")) == 1


def test_another_session_in_the_files_place_is_another_chat(
    server: Server, start: Start, tmp_path: Path
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    path = session.write(tmp_path / "s.jsonl")
    start("tail", path, "--follow")
    eventually(lambda: replies(server) == [20_000], "the first session")
    other = Session("07e40000-0000-4000-8000-000000000000")
    other.turn("m1", 9_000)
    other.write(tmp_path / "new.jsonl")
    os.replace(tmp_path / "new.jsonl", path)
    eventually(lambda: replies(server) == [20_000, 9_000], "the second session")
    assert len({event["chat"] for event in server.events()}) == 2


def test_an_empty_file_is_waited_for(server: Server, start: Start, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"")
    start("tail", path, "--follow")
    eventually(lambda: server.live, "the connection")
    session = Session()
    session.turn("m1", 20_000)
    session.write(path)
    eventually(lambda: replies(server) == [20_000], "the first reply")


def test_killed_between_any_two_steps_it_sends_nothing_twice_and_loses_nothing(
    server: Server, command: Command, start: Start, tmp_path: Path
) -> None:
    session = Session()
    for number in range(3_000):
        session.turn(f"m{number}", 20_000 + number)
    path = session.write(tmp_path / "s.jsonl")
    expected = [20_000 + number for number in range(3_000)]
    for seen in (1, 400, 1_500):
        process = start("tail", path)
        eventually(partial(_has, server, seen), "some replies", 30)
        process.kill()
        process.wait()
    assert command("tail", path) == 0
    assert replies(server) == expected
    assert len(server.events("turn.ended")) == 3_000
    assert server.events("gap") == []


def test_a_server_that_is_away_is_waited_for_with_a_word(
    server: Server, start: Start, tmp_path: Path
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    path = session.write(tmp_path / "s.jsonl")
    server.stop()
    process = start("tail", path)
    assert process.stderr is not None
    said = process.stderr.readline()
    assert said.startswith(f"No connection to {server.url} (") and "waiting for it" in said
    server.start()
    assert process.wait(timeout=60) == 0
    assert replies(server) == [20_000]


def test_interrupted_while_the_server_is_away_it_says_what_waits(
    server: Server, command: Command, start: Start, tmp_path: Path
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    path = session.write(tmp_path / "s.jsonl")
    server.stop()
    process = start("tail", path)
    assert process.stderr is not None
    process.stderr.readline()
    code, _, err = interrupt(process)
    assert code == 130
    assert "events wait in the outbox for the next time" in err
    server.start()
    assert command("tail", path) == 0
    assert replies(server) == [20_000]


def test_a_slow_server_makes_it_wait_and_nothing_is_dropped(
    server: Server, command: Command, tmp_path: Path
) -> None:
    server.limits["inflight"] = 100
    session = Session()
    for number in range(4_000):
        session.turn(f"m{number}", 20_000 + number)
    assert command("tail", session.write(tmp_path / "s.jsonl")) == 0
    assert len(replies(server)) == 4_000
    assert server.events("gap") == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "There is no file"),
        ("folder", "is a folder: `ctxhealth watch claude-code"),
        (b'{"session":{"id":"x"}}\n', "is an opencode export; this version"),
        (b"hello\nworld\n", "is not a session file that can be read (a Claude Code session, a"),
        (b"\x00\xff" * 3_000, "is not a session file"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(
    content: Any, words: str, command: Command, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "s.jsonl"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    assert command("tail", path) == 2
    err = capsys.readouterr().err
    assert words in err
    assert len(err.splitlines()) == 1 and err.endswith(".\n")


def test_a_refused_token_and_a_missing_one_are_one_sentence_each(
    server: Server, command: Command, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    path = session.write(tmp_path / "s.jsonl")
    command.common[command.common.index("--token") + 1] = "ctxh_wrong"
    assert command("tail", path) == 3
    assert capsys.readouterr().err.startswith("The server does not know this token")
    at = command.common.index("--token")
    del command.common[at : at + 2]
    monkeypatch.delenv("CTXHEALTH_TOKEN", raising=False)
    assert command("tail", path) == 2
    assert capsys.readouterr().err.startswith("No token: set CTXHEALTH_TOKEN")
    secret = tmp_path / "token"
    secret.write_text(f"{TOKEN}\n")
    assert command("tail", path, "--token-file", secret) == 0


def test_two_at_once_with_one_state_do_not_fight(
    server: Server, command: Command, start: Start, tmp_path: Path
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    path = session.write(tmp_path / "s.jsonl")
    first = start("tail", path, "--follow")
    eventually(lambda: replies(server) == [20_000], "the first one")
    second = start("tail", path)
    _, err = second.communicate(timeout=30)
    assert second.returncode == 2
    assert "Another `ctxhealth tail` or `watch` runs with" in err
    assert interrupt(first)[0] == 0
    assert len(server.hellos) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_memory_does_not_grow_with_the_file(server: Server, start: Start, tmp_path: Path) -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 20_000, call("t1"), stop="tool_use")
    session.result("t1", "x" * 5_000_000)
    session.answer("m2", 21_000)
    path = session.write(tmp_path / "s.jsonl")
    with path.open("ab") as file:
        for number in range(300):
            session.prompt()
            session.reply(f"n{number}", 22_000, call(f"u{number}"), stop="tool_use")
            session.result(f"u{number}", "y" * 100_000)
            file.write(b"".join(line + b"\n" for line in session.lines()[-3:]))
            del session.rows[:]
    process = start("tail", path)
    peak = 0
    while process.poll() is None:
        with contextlib.suppress(OSError, StopIteration):
            status = Path(f"/proc/{process.pid}/status").read_text()
            line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
            peak = max(peak, int(line.split()[1]))
    assert process.returncode == 0
    assert len(replies(server)) == 302
    # The line of 5 MB is held as bytes, as text and as a value for a moment.
    assert 0 < peak < 90 * 1024


def test_the_command_needs_neither_django_nor_msgspec(tmp_path: Path) -> None:
    code = """
import sys
for name in ("django", "msgspec", "tiktoken", "channels"):
    sys.modules[name] = None
from ctxhealth.cli import main
sys.exit(main(["tail", sys.argv[1], "--token", "x"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "none.jsonl")], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (2, f"There is no file {tmp_path / 'none.jsonl'}.\n")
    session = Session()
    session.turn("m1", 20_000)
    code = (
        code.split("from ctxhealth.cli")[0]
        + """
from ctxhealth.cli.windows import window_of
from ctxhealth.readers.claude_code import ClaudeCodeReader
reader = ClaudeCodeReader(window_of=window_of())
for line in open(sys.argv[1], "rb"):
    reader.feed(line)
assert reader.counts["model.replied"] == 0
reader.finish()
assert reader.counts["model.replied"] == 1
"""
    )
    path = session.write(tmp_path / "s.jsonl")
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


def test_a_command_hushes_the_log_of_the_sdk_only_while_it_runs(tmp_path: Path) -> None:
    log = logging.getLogger("ctxhealth.client")
    before = log.level
    main(["tail", str(tmp_path / "none.jsonl"), "--token", "x"])
    assert log.level == before


def test_a_document_over_many_lines_is_sent_to_its_end(
    server: Server, command: Command, tmp_path: Path, capsys: Any
) -> None:
    made = GeminiSession()
    made.turn(12_000)
    made.turn(12_500)
    path = tmp_path / "session.json"
    path.write_bytes(made.document())
    assert command("tail", path) == 0
    assert len(replies(server)) == 2
    assert "is not finished" not in capsys.readouterr().out
