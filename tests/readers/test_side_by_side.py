"""Several senders against a real server: two tails, a watch over the same tree, a mailed file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.browser.server import ROOT
from tests.browser.server import Server as RealServer
from tests.client.server import eventually
from tests.readers.conftest import interrupt
from tests.readers.session import SESSION, Session, call, text, thinking

pytestmark = pytest.mark.e2e
Start = Callable[..., "subprocess.Popen[str]"]
OTHER = "07e40000-0000-4000-8000-000000000000"


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RealServer]:
    server = RealServer(tmp_path / "server")
    server.answer = server.seed(tokens={"files": ["ingest", "read"], "write": ["ingest"]})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def start(real: RealServer, tmp_path: Path) -> Iterator[Start]:
    """``ctxhealth`` as a stranger calls it: without a name, all with one state."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: object, token: str = "files", state: str = "state") -> Any:
        code = "import sys; from ctxhealth.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", code, *map(str, arguments), "--url", real.origin]
        started.append(
            subprocess.Popen(
                [*command, "--state", str(tmp_path / state)], cwd=ROOT, text=True,
                env={**os.environ, "CTXHEALTH_TOKEN": real.answer["tokens"][token]},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        )  # fmt: skip
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def chats(server: RealServer) -> dict[tuple[str, str], tuple[int, int | None]]:
    """(agent without its id, chat) -> requests and load."""
    token = server.answer["tokens"]["files"]
    request = Request(
        f"{server.origin}/api/v1/chats?limit=500", headers={"Authorization": f"Bearer {token}"}
    )
    with urlopen(request, timeout=5) as answer:
        found = json.load(answer)["chats"]
    return {
        (each["agent"].partition(" (")[0].partition(" on ")[0], each["chat"]): (
            each["requests"],
            each["load"]["value"],
        )
        for each in found
    }


def _are(server: RealServer, expected: dict[tuple[str, str], tuple[int, int]]) -> bool:
    return chats(server) == expected


def test_two_tails_and_a_watch_run_side_by_side_and_no_chat_mixes_them(
    real: RealServer, start: Start, tmp_path: Path
) -> None:
    first, other = Session(), Session(OTHER)
    for session in (first, other):
        session.turn("m1", 20_000)
        session.write(tmp_path / "projects" / "p" / f"{session.id}.jsonl")
    paths = [tmp_path / "projects" / "p" / f"{id}.jsonl" for id in (SESSION, OTHER)]
    processes = [start("tail", "--follow", path) for path in paths]
    processes.append(start("watch", "claude-code", tmp_path / "projects"))
    names = [f"claude-code {SESSION[:8]}", f"claude-code {OTHER[:8]}", "claude-code"]
    keys = list(zip([*names[:2], names[2], names[2]], [SESSION, OTHER] * 2, strict=True))
    eventually(lambda: chats(real) == dict.fromkeys(keys, (1, 20_000)), "four chats", 60)
    for number in range(2, 5):
        for session, path in zip((first, other), paths, strict=True):
            session.prompt()
            session.reply(f"m{number}", 20_000 + number, text("No stop reason."))
            session.write(path)
        grown = dict.fromkeys(keys, (number, 20_000 + number))
        eventually(partial(_are, real, grown), f"turn {number}", 30)
    assert [process.poll() for process in processes] == [None, None, None]
    for process in processes:
        code, _, err = interrupt(process)
        assert (code, err) == (0, "")


def test_a_mailed_session_that_two_people_send_is_counted_once_in_each_chat(
    real: RealServer, start: Start, tmp_path: Path
) -> None:
    session = Session()
    for number in range(13):
        session.turn(f"m{number}", 20_000 + number)
    path = session.write(tmp_path / f"{SESSION}.jsonl")
    for state in ("mine", "yours", "mine"):
        assert start("tail", path, state=state).wait(60) == 0
    token = real.answer["tokens"]["files"]
    request = Request(f"{real.origin}/api/v1/chats", headers={"Authorization": f"Bearer {token}"})
    with urlopen(request, timeout=5) as answer:
        found = json.load(answer)["chats"]
    assert [each["requests"] for each in found] == [13, 13]
    assert len({each["agent"] for each in found}) == 2


def test_a_token_that_may_not_read_is_refused_once(
    real: RealServer, start: Start, tmp_path: Path
) -> None:
    for id in (SESSION, OTHER):
        session = Session(id)
        session.turn("m1", 20_000)
        path = session.write(tmp_path / f"{id}.jsonl")
        for _ in range(2):
            process = start("tail", path, token="write")
            out, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            assert f"{real.origin}/?q={id}" in out
    assert real.log().count("Forbidden: /api/v1/chats") == 1
    process = start("tail", path, state="other")
    out, _ = process.communicate(timeout=60)
    assert f"{real.origin}/chats/" in out


def test_a_sub_agents_last_reply_is_shown_while_its_session_is_busy(
    real: RealServer, start: Start, tmp_path: Path
) -> None:
    session, side = Session(), Session()
    side.number = 500
    session.prompt()
    session.reply("m1", 30_000, thinking("hm"))
    session.reply("m1", 30_000, call("t1", "Task"))
    path = session.write(tmp_path / f"{SESSION}.jsonl")
    start("tail", "--follow", path)
    name = f"claude-code {SESSION[:8]}"
    child = (name, f"{SESSION}:agent-a1")
    eventually(lambda: chats(real).get((name, SESSION)) == (1, 30_000), "the call", 60)
    side.prompt("Look.", isSidechain=True, agentId="a1")
    side.reply("s1", 9_000, text("Carrots."), isSidechain=True, agentId="a1")
    side.write(tmp_path / SESSION / "subagents" / "agent-a1.jsonl")

    def shown() -> bool:
        # The session's own file changes at every look and never rests.
        session.row("progress", data={"type": "hook_progress"})
        session.write(path)
        return chats(real).get(child) == (1, 9_000)

    eventually(shown, "the sub-agent's reply", 12)
