"""The whole line: a file, the command, a real server, its API; killed in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.browser.server import ROOT
from tests.browser.server import Server as RealServer
from tests.client.server import eventually
from tests.readers.session import SESSION, Session

pytestmark = pytest.mark.e2e


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RealServer]:
    server = RealServer(tmp_path / "server")
    server.answer = server.seed(tokens={"files": ["ingest", "read"]})
    server.start()
    yield server
    server.stop()


class Tail:
    """``ctxhealth tail --follow`` in a process of its own, and what the server says of its chat."""

    def __init__(self, server: RealServer, path: Path, state: Path) -> None:
        self._server = server
        token = server.answer["tokens"]["files"]
        code = "import sys; from ctxhealth.cli import main; sys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "tail", "--follow", str(path), "--url", server.origin,
             "--state", str(state)],
            cwd=ROOT, env={**os.environ, "CTXHEALTH_TOKEN": token}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._token = token

    def chat(self) -> dict[str, Any]:
        request = Request(
            f"{self._server.origin}/api/v1/chats?q={SESSION}",
            headers={"Authorization": f"Bearer {self._token}"},
        )
        try:
            with urlopen(request, timeout=5) as answer:
                found = json.load(answer)["chats"]
        except OSError:
            return {}
        return found[0] if found else {}

    def load(self) -> int | None:
        chat = self.chat()
        return chat["load"]["value"] if chat else None

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(2)
        out, _ = self.process.communicate(timeout=30)
        return self.process.returncode, out


def test_a_growing_session_survives_a_killed_server_and_is_shown_with_every_source(
    real: RealServer, tmp_path: Path
) -> None:
    session = Session()
    session.turn("m1", 154_992)
    path = session.write(tmp_path / "s.jsonl")
    tail = Tail(real, path, tmp_path / "state")
    try:
        eventually(lambda: tail.load() == 154_992, "the first load", 30)
        real.kill()
        session.boundary(155_250)
        for number in range(2, 60):
            session.turn(f"m{number}", 49_700 + number)
        session.write(path)
        real.start()
        eventually(lambda: tail.load() == 49_759, "the last load", 60)
        chat = tail.chat()
        code, out = tail.stop()
    finally:
        tail.process.kill()
        tail.process.communicate()
    assert code == 0
    assert f"{real.origin}/chats/{chat['id']}/" in out
    assert (chat["requests"], chat["compactions"], chat["state"]) == (59, 1, "healthy")
    assert chat["load"]["source"] == "provider"
    assert (chat["window"]["value"], chat["window"]["source"]) == (200_000, "table")
    last = chat["last_compaction"]
    assert (last["outcome"], last["before"], last["after"]) == ("reduced", 154_992, 49_702)
    assert chat["connection"] == "read_only"
