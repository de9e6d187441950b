"""``ctxhealth replay``: the diagnosis in the terminal, and the stream in a server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from ctxhealth.cli import main
from ctxhealth.wire.decode import decode_event
from tests.browser.server import Server as RealServer
from tests.client.server import TOKEN, Server, running
from tests.incidents.make import FOLDER
from tests.readers.session import Session

MAKA = FOLDER / "C23-maka-structural.jsonl"
FAMILY = FOLDER / "C67-sub-agent-usage.jsonl"


def replay(*arguments: object) -> int:
    return main(["replay", *[str(argument) for argument in arguments]])


class TestTold:
    def test_headline_findings_advice_latches_and_attempts_are_printed(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert replay(MAKA) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "Chat chat: Blocked (critical)" in said
        assert "it stopped the rescue after a context overflow" in said
        assert "Critical: Over the window (over_window)" in said
        assert "Do: Clear the latch, then compact." in said
        assert "Not: continue. The same prompt would be refused or cut again." in said
        assert "flag (structural, scope turn): not justified" in said
        assert "proactive: Nothing foldable, 0 summarizer calls" in said

    def test_many_attempts_are_cut_and_counted(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert replay(FOLDER / "C09-claude-code-211.jsonl") == 0
        out = capsys.readouterr().out
        assert "Compactions: 211 (211 unknown)" in out
        assert "199 earlier ones are left out" in out
        assert out.count("proactive:") == 12

    def test_what_a_later_cause_explains_says_so(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert replay(FOLDER / "C13-openclaw-already.jsonl") == 0
        assert "Explained by latched_unjustified." in capsys.readouterr().out

    def test_as_json_it_is_the_page_of_every_chat(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert replay(FAMILY, "--json") == 0
        pages = json.loads(capsys.readouterr().out)
        assert pages["parent"]["summary"]["load"]["value"] == 61_000
        assert pages["child"]["summary"]["parent"] == "parent"

    def test_a_session_file_is_diagnosed_as_read_only(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        session = Session()
        session.turn("m1", 20_000)
        assert replay(session.write(tmp_path / "s.jsonl"), "--json") == 0
        (page,) = json.loads(capsys.readouterr().out).values()
        assert page["summary"]["connection"] == "read_only"
        assert page["summary"]["load"]["value"] == 20_000

    def test_time_passes_as_in_the_stream(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        sent = {"type": "request.sent", "request": "r", "ts": 1_000_000, "chat": "c"}
        other = {"type": "note", "text": "later", "ts": 1_000_000 + 240_000, "chat": "c"}
        path = write(tmp_path, sent, other)
        assert replay(path) == 0
        assert "Chat c: Hung (critical)" in capsys.readouterr().out


def write(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "stream.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('{"type":"note","ts":1,"chat":"c"}\nrubbish\n', "line 2: not JSON"),
            ("[1]\n", "line 1: an event is an object with a type"),
            ('{"type":"note","chat":"c"}\n', "line 1: an event has a ts"),
            ('{"type":"note","ts":1}\n', "holds no event of a chat"),
        ],
    )
    def test_a_file_that_is_no_stream(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
    ) -> None:
        path = tmp_path / "stream.jsonl"
        path.write_text(text)
        assert replay(path) == 2
        assert said in capsys.readouterr().err

    def test_a_file_that_is_not_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert replay("nowhere.jsonl") == 2
        assert "nowhere.jsonl cannot be read" in capsys.readouterr().err

    def test_an_event_that_is_none_is_told_and_the_rest_is_folded(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        bad = {"type": "usage.update", "ts": 1, "chat": "c", "used": -5}
        good = {"type": "usage.update", "ts": 2, "chat": "c", "used": 5_000}
        assert replay(write(tmp_path, bad, good)) == 0
        told = capsys.readouterr()
        assert "usage.update was refused: $.used" in told.err
        assert "load      5,000" in told.out

    def test_without_the_server_s_part_it_says_what_is_missing(self) -> None:
        code = (
            "import sys\nsys.modules['msgspec'] = None\nfrom ctxhealth.cli import main\n"
            "sys.exit(main(['replay', sys.argv[1]]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(MAKA)], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert "ctxhealth[server]" in done.stderr and "msgspec is missing" in done.stderr


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as server:
        yield server


def played(server: Server) -> list[dict[str, Any]]:
    (events,) = server.streams.values()
    return events


class TestPlayed:
    def test_every_event_arrives_in_order_and_is_one(self, server: Server) -> None:
        assert replay(MAKA, "--url", server.url, "--token", TOKEN, "--quiet") == 0
        told = [json.loads(line) for line in MAKA.read_text().splitlines()]
        events = played(server)
        assert [event["type"] for event in events] == [line["type"] for line in told]
        for event, line in zip(events, told, strict=True):
            decode_event(json.dumps(event).encode())
            own = {"seq", "ts", "chat"}
            assert {k: v for k, v in event.items() if k not in own} == {
                k: v for k, v in line.items() if k not in own
            }
        assert all(event["chat"].startswith("C23-maka-structural ") for event in events)

    def test_it_ends_now_and_keeps_the_distances(self, server: Server) -> None:
        assert replay(MAKA, "--url", server.url, "--token", TOKEN, "--quiet") == 0
        times = [event["ts"] for event in played(server)]
        assert abs(times[-1] - time.time() * 1000) < 60_000
        assert {b - a for a, b in pairwise(times)} == {1_000}

    def test_moments_inside_events_move_with_it(self, server: Server) -> None:
        path = FOLDER / "C25-hermes-cooldown-full.jsonl"
        assert replay(path, "--url", server.url, "--token", TOKEN, "--quiet") == 0
        told = [json.loads(line) for line in path.read_text().splitlines()]
        shift = played(server)[0]["ts"] - told[0]["ts"]
        assert played(server)[-1]["release"]["until"] == told[-1]["release"]["until"] + shift

    def test_with_a_speed_the_events_take_their_time(self, server: Server, tmp_path: Path) -> None:
        notes = [{"type": "note", "text": "n", "ts": 1_000 + 400 * n, "chat": "c"} for n in (0, 1)]
        path = write(tmp_path, *notes)
        begun = time.monotonic()
        assert replay(path, "--url", server.url, "--token", TOKEN, "--speed", "2", "-q") == 0
        assert time.monotonic() - begun >= 0.2

    def test_a_sub_agent_keeps_its_parent(self, server: Server) -> None:
        common = ("--url", server.url, "--token", TOKEN, "--quiet")
        assert replay(FAMILY, *common, "--chat", "mine") == 0
        opened = [event for event in played(server) if event["type"] == "chat.opened"]
        assert [(e["chat"], e.get("parent")) for e in opened] == [
            ("mine parent", None),
            ("mine child", "mine parent"),
        ]

    def test_a_transcript_s_agent_offers_nothing(self, server: Server) -> None:
        path = FOLDER / "C14-codex-window.jsonl"
        assert replay(path, "--url", server.url, "--token", TOKEN, "--quiet") == 0
        assert server.hellos[-1]["caps"]["read_only"] is True
        assert server.hellos[-1]["caps"]["commands"] == []
        assert all(not event["type"].startswith("server.") for event in played(server))

    def test_a_token_that_is_not_known_ends_it(
        self, server: Server, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert replay(MAKA, "--url", server.url, "--token", "ctxh_no_such") == 3
        assert "does not know this token" in capsys.readouterr().err


@pytest.fixture
def real(tmp_path: Path) -> Iterator[tuple[RealServer, str]]:
    server = RealServer(tmp_path / "server")
    token = server.seed(tokens={"files": ["ingest", "read"]})["tokens"]["files"]
    server.start()
    yield server, token
    server.stop()


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["C01-agent-zero-no-quota", "C23-maka-structural"])
def test_a_server_says_of_a_played_case_what_the_terminal_says(
    real: tuple[RealServer, str], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    server, token = real
    path = FOLDER / f"{name}.jsonl"
    assert replay(path, "--json") == 0
    (page,) = json.loads(capsys.readouterr().out).values()
    assert replay(path, "--url", server.origin, "--token", token, "--chat", "played") == 0
    request = Request(
        f"{server.origin}/api/v1/chats?q=played", headers={"Authorization": f"Bearer {token}"}
    )
    with urlopen(request, timeout=10) as answer:
        (chat,) = json.load(answer)["chats"]
    row = page["summary"]
    assert chat["state"] == row["state"]
    # The player has gone by now, which the server says too.
    found = {f["code"]: f["severity"] for f in chat["findings"] if f["code"] != "agent_late"}
    assert found == {f["code"]: f["severity"] for f in row["findings"]}
    assert [latch["kind"] for latch in chat["latches"]] == [
        latch["kind"] for latch in row["latches"]
    ]
