"""As which agent a file is sent: each sender is one of its own, and the same one again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.cli import main
from tests.client.server import TOKEN, Server
from tests.readers.session import SESSION, Session, loads

NAME = re.compile(rf"claude-code {SESSION[:8]} \([a-z2-9]{{4}}\)")


def send(server: Server, state: Path, *arguments: object) -> None:
    common = ["--url", server.url, "--token", TOKEN, "--state", str(state)]
    assert main([*map(str, arguments), *common]) == 0


def senders(server: Server) -> dict[str, set[str]]:
    """Agent -> its streams."""
    found: dict[str, set[str]] = {}
    for hello in server.hellos:
        found.setdefault(hello["agent"], set()).add(hello["epoch"])
    return found


def sent(server: Server) -> list[list[int]]:
    """The replies of every stream."""
    with server.lock:
        return sorted(loads(stream) for stream in server.streams.values())


@pytest.fixture
def session(tmp_path: Path) -> Path:
    made = Session()
    made.turn("m1", 20_000)
    return made.write(tmp_path / f"{SESSION}.jsonl")


def test_the_same_state_is_the_same_agent_and_sends_nothing_twice(
    server: Server, session: Path, tmp_path: Path
) -> None:
    for _ in range(3):
        send(server, tmp_path / "state", "tail", session)
    assert [len(streams) for streams in senders(server).values()] == [1]
    assert NAME.fullmatch(next(iter(senders(server))))
    assert sent(server) == [[20_000]]


@pytest.mark.parametrize("how", ["lost", "elsewhere", "outbox lost", "outbox unreadable", "again"])
def test_a_session_sent_again_without_its_state_is_another_agents_chat(
    how: str, server: Server, session: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    send(server, state, "tail", session)
    outbox = next(state.glob("*/outbox.sqlite3"))
    if how == "lost":
        shutil.rmtree(state)
    elif how == "elsewhere":
        state = tmp_path / "other"
    elif how == "outbox lost":
        outbox.unlink()
    elif how == "outbox unreadable":
        outbox.write_bytes(b"no database at all" * 100)
    send(server, state, "tail", session, *(["--again"] if how == "again" else []))
    assert [len(streams) for streams in senders(server).values()] == [1, 1]
    assert all(map(NAME.fullmatch, senders(server)))
    assert sent(server) == [[20_000], [20_000]]


def test_a_copy_of_the_file_and_the_same_file_to_another_server_are_other_agents(
    server: Server, session: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "mail" / session.name
    copy.parent.mkdir()
    shutil.copy(session, copy)
    send(server, tmp_path / "state", "tail", session)
    send(server, tmp_path / "state", "tail", copy)
    assert sent(server) == [[20_000], [20_000]]
    assert len(senders(server)) == 2
    common = ["--token", TOKEN, "--state", str(tmp_path / "state")]
    assert main(["tail", str(session), "--url", f"{server.url}/", *common]) == 0
    by_name = server.url.replace("127.0.0.1", "localhost")
    assert main(["tail", str(session), "--url", by_name, *common]) == 0
    assert sent(server) == [[20_000]] * 3


def test_a_watch_is_named_after_the_host_and_stays_the_same_agent(
    server: Server, session: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "green house.example.org")
    state = tmp_path / "state"
    send(server, state, "watch", "claude-code", session.parent, "--once")
    send(server, state, "watch", "claude-code", session.parent, "--once")
    (agent,) = senders(server)
    assert re.fullmatch(r"claude-code on greenhouse \([a-z2-9]{4}\)", agent)
    assert sent(server) == [[20_000]]
    send(server, state, "tail", session)
    assert sent(server) == [[20_000], [20_000]]
    assert len(senders(server)) == 2


def test_a_name_that_is_given_is_the_agents_with_one_stream_for_all_its_files(
    server: Server, session: Path, tmp_path: Path
) -> None:
    other = Session("07e40000-0000-4000-8000-000000000000")
    other.turn("m1", 9_000)
    path = other.write(tmp_path / "other.jsonl")
    for file in (session, path, session):
        send(server, tmp_path / "state", "tail", file, "--agent", "garden")
    assert {name: len(streams) for name, streams in senders(server).items()} == {"garden": 1}
    assert sent(server) == [[20_000, 9_000]]


def test_a_name_is_readable_whatever_the_session_is_called(server: Server, tmp_path: Path) -> None:
    made = Session("\u202ee\x1b[31m/../" + "x" * 500)
    made.turn("m1", 20_000)
    send(server, tmp_path / "state", "tail", made.write(tmp_path / ("s" * 200 + ".jsonl")))
    (agent,) = senders(server)
    assert re.fullmatch(r"claude-code e31m..[x.]{1,4} \([a-z2-9]{4}\)", agent), agent


def test_an_empty_file_keeps_the_name_that_it_began_with(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "garden-1.jsonl"
    path.write_bytes(b"")
    send(server, tmp_path / "state", "tail", path)
    made = Session()
    made.turn("m1", 20_000)
    made.write(path)
    send(server, tmp_path / "state", "tail", path)
    assert [len(streams) for streams in senders(server).values()] == [1]
    assert next(iter(senders(server))).startswith("claude-code garden-1 (")
    assert sent(server) == [[20_000]]


def test_a_state_folder_that_cannot_be_used_is_one_sentence(
    server: Server, session: Path, tmp_path: Path, capsys: Any
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    common = ["--url", server.url, "--token", TOKEN, "--state", str(blocked)]
    assert main(["tail", str(session), *common]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"The state folder {blocked}/") and len(err.splitlines()) == 1
