"""``ctxhealth watch claude-code``: a tree of sessions, new ones and sub-agents included."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxhealth.cli.follower import MOST_ACTIVE
from ctxhealth.cli.watch import sessions
from tests.client.server import Server, eventually
from tests.readers.conftest import Command, interrupt
from tests.readers.rollout import THREAD, Rollout
from tests.readers.session import Session, loads

Start = Callable[..., "subprocess.Popen[str]"]


def named(number: int) -> Session:
    """Session ``number`` with one turn, at 10,000 tokens more than its number."""
    session = Session(f"{number:08d}-0000-4000-8000-000000000000")
    session.turn("m1", 10_000 + number)
    return session


def by_chat(server: Server) -> dict[str, list[int]]:
    events = server.events()
    return {chat: loads(events, chat) for chat in {event["chat"] for event in events}}


def test_a_tree_is_read_followed_and_its_place_remembered(
    server: Server, start: Start, tmp_path: Path
) -> None:
    tree = tmp_path / "projects"
    first, second = named(1), named(2)
    first.write(tree / "-home-a" / f"{first.id}.jsonl")
    (tree / "-home-a" / "notes.txt").write_text("no session")
    process = start("watch", "claude-code", tree)
    eventually(lambda: by_chat(server) == {first.id: [10_001]}, "the session that was there")
    second.write(tree / "-home-b" / f"{second.id}.jsonl")
    first.turn("m2", 20_000)
    first.write(tree / "-home-a" / f"{first.id}.jsonl")
    both = {first.id: [10_001, 20_000], second.id: [10_002]}
    eventually(lambda: by_chat(server) == both, "a new session and a longer one")
    side = Session(first.id)
    side.number = 500
    side.prompt("Look.", isSidechain=True, agentId="a1")
    side.answer("s1", 9_000, isSidechain=True, agentId="a1")
    side.write(tree / "-home-a" / first.id / "subagents" / "agent-a1.jsonl")
    child = f"{first.id}:agent-a1"
    eventually(lambda: by_chat(server) == {**both, child: [9_000]}, "the sub-agent")
    code, _out, err = interrupt(process)
    assert (code, err) == (0, "")
    before = server.events()
    first.turn("m3", 21_000)
    first.write(tree / "-home-a" / f"{first.id}.jsonl")
    start("watch", "claude-code", tree)
    both[first.id].append(21_000)
    eventually(lambda: by_chat(server) == {**both, child: [9_000]}, "what came meanwhile")
    assert server.events()[: len(before)] == before
    parents = [event.get("parent") for event in server.events("chat.opened")]
    assert parents == [None, None, first.id]


def test_more_sessions_than_are_kept_in_memory_are_all_read_and_go_on_where_they_were(
    server: Server, command: Command, tmp_path: Path, capsys: Any
) -> None:
    tree = tmp_path / "projects"
    many = [named(number) for number in range(2 * MOST_ACTIVE)]
    for session in many:
        session.write(tree / "p" / f"{session.id}.jsonl")
    assert command("watch", "claude-code", tree, "--once") == 0
    assert f"{len(many)} sessions read" in capsys.readouterr().out
    for session in many:
        session.turn("m2", 30_000)
        session.write(tree / "p" / f"{session.id}.jsonl")
    assert command("watch", "claude-code", tree, "--once") == 0
    assert by_chat(server) == {
        session.id: [10_000 + number, 30_000] for number, session in enumerate(many)
    }
    before = len(server.events())
    assert command("watch", "claude-code", tree, "--once") == 0
    assert len(server.events()) == before


def test_what_is_no_session_or_cannot_be_read_does_not_stop_the_others(
    server: Server, command: Command, tmp_path: Path
) -> None:
    tree = tmp_path / "projects"
    good = named(1)
    good.write(tree / "p" / f"{good.id}.jsonl")
    (tree / "p" / "codex.jsonl").write_text('{"type":"session_meta","payload":{}}\n')
    (tree / "p" / "empty.jsonl").write_text("")
    (tree / "p" / "gone.jsonl").symlink_to(tree / "nowhere.jsonl")
    (tree / "loop").symlink_to(tree)
    assert command("watch", "claude-code", tree, "--once") == 0
    assert by_chat(server) == {good.id: [10_001]}


def test_old_sessions_can_be_left_out(server: Server, command: Command, tmp_path: Path) -> None:
    tree = tmp_path / "projects"
    old, new = named(1), named(2)
    path = old.write(tree / "p" / f"{old.id}.jsonl")
    long_ago = time.time() - 40 * 86_400
    os.utime(path, (long_ago, long_ago))
    new.write(tree / "p" / f"{new.id}.jsonl")
    assert command("watch", "claude-code", tree, "--once", "--since-days", "30") == 0
    assert set(by_chat(server)) == {new.id}


def test_a_folder_that_is_not_there_is_one_sentence(command: Command, tmp_path: Path, capsys: Any
) -> None:  # fmt: skip
    assert command("watch", "claude-code", tmp_path / "none") == 2
    assert capsys.readouterr().err == f"There is no folder {tmp_path / 'none'}.\n"


def test_a_thousand_files_in_a_tree_are_found_once_each(tmp_path: Path) -> None:
    for number in range(1_000):
        path = tmp_path / f"p{number % 20}" / f"s{number}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * number)
    found = list(sessions(tmp_path))
    assert sorted(each.size for each in found) == list(range(1_000))
    assert len({each.path for each in found}) == 1_000


def test_each_product_has_its_own_folder_and_its_own_agent(
    server: Server, command: Command, tmp_path: Path, monkeypatch: Any
) -> None:
    codex = tmp_path / "home" / "sessions" / "2026" / "10" / "01"
    codex.mkdir(parents=True)
    rollout = Rollout()
    rollout.turn(9_000)
    (codex / "rollout-1.jsonl").write_bytes(b"\n".join(rollout.lines()) + b"\n")
    named(1).write(codex / "claude.jsonl")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home"))
    assert command("watch", "codex", "--once") == 0
    assert {event["chat"] for event in server.events()} == {THREAD}
    assert server.hellos[-1]["runtime"] == "codex"
