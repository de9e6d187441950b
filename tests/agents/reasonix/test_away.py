"""One side of the bridge is away, or does not want it: said once, and taken up again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxhealth.agents.bridging import CannotBridge, refusal
from ctxhealth.agents.reasonix import bridge as running
from tests.agents.reasonix.conftest import Running, Start, options
from tests.agents.reasonix.fake import Fake
from tests.client.server import Server, eventually


def test_a_reasonix_that_stays_away_closes_its_chat_until_it_is_back(
    server: Server, fake: Fake, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_AWAY_S", 0.05)
    bridge = start()
    fake.begin("a long one")
    eventually(lambda: server.events("request.sent"))
    fake.stop()
    eventually(lambda: server.events("chat.closed"), "the chat to close")
    assert server.events("turn.ended")[-1]["outcome"] == "cancelled"
    server.command("k1", "compact_summarize", fake.session)
    assert server.ended("k1")["reason"] == "busy"
    fake.running, fake.turn_status = False, "interrupted"
    fake.start()
    eventually(lambda: len(server.events("chat.opened")) == 2, "the chat to open again")
    assert bridge.said.count("No connection to") == 1
    assert bridge.said.count("answers again") == 1


def test_a_server_that_is_away_gets_everything_later(
    server: Server, fake: Fake, start: Start
) -> None:
    bridge = start()
    eventually(lambda: server.events("usage.update"))
    server.stop()
    fake.turn("hello", "fine", 5_000)
    eventually(lambda: "waiting for it" in bridge.said)
    server.start()
    eventually(lambda: server.events("turn.ended"))
    eventually(lambda: "Connected to" in bridge.said)
    assert len(server.events("message.added")) == 2


def test_a_server_that_refuses_for_good_ends_the_bridge(
    server: Server, fake: Fake, tmp_path: Path
) -> None:
    given = options(server, fake, tmp_path / "state")
    given.token = "ctxh_wrong"
    bridge = Running(given)
    ended = eventually(lambda: bridge.ended)
    bridge.stop()
    assert (ended.code, "does not know this token" in str(ended)) == (3, True)


def test_a_bridge_keeps_its_name_and_its_state_to_itself(
    server: Server, fake: Fake, start: Start, tmp_path: Path
) -> None:
    first = start()
    with pytest.raises(CannotBridge, match="Another bridge runs with"):
        Running(options(server, fake, tmp_path / "state"))
    first.stop()
    second = start()
    name = second.line.reporter.agent
    assert (name, name.startswith("reasonix on ")) == (first.line.reporter.agent, True)


def test_what_may_pass_is_no_refusal() -> None:
    assert refusal("ConnectionRefusedError: [Errno 111]") is None
    assert refusal("closed 1012 restart") is None
    assert refusal("closed 4408 replaced") is not None
    assert "ingest" in str(refusal("closed 4403 the scope ingest is missing."))


RUBBISH = [
    b"data: 5", b"data: }{", b"data: " + b"[" * 100_000, b"\xff\x00", b'data: {"kind":[1]}',
    b'data: {"sessionId":"%s","kind":"usage","usage":7,"seq":"x"}',
    b'data: {"sessionId":"%s","kind":"tool_result","tool":[]}',
    b'data: {"sessionId":"%s","kind":"turn_done","diagnostic":3,"status":{}}',
    b'data: {"sessionId":"%s","kind":"context_maintenance","maintenance":"m"}',
]  # fmt: skip


@pytest.mark.parametrize("frame", RUBBISH, ids=map(str, range(len(RUBBISH))))
def test_a_frame_that_cannot_be_read_costs_nothing_else(
    server: Server, fake: Fake, start: Start, frame: bytes
) -> None:
    start()
    for client in fake.clients:
        client.put(frame.replace(b"%s", fake.session.encode()) + b"\n\n")
    fake.turn("hello", "hi", 5_000)
    eventually(lambda: server.events("turn.ended"), "the turn")
    (replied,) = server.events("model.replied")
    assert replied["usage"]["input"] == 5_000


@pytest.mark.parametrize("answer", [[None], 3, {"sessions": 3, "records": 5}], ids=repr)
@pytest.mark.parametrize("path", ["/context", "/models", "/sessions", "/transcript/snapshot"])
def test_an_answer_of_another_shape_is_unknown_and_the_turns_are_told(
    server: Server, fake: Fake, start: Start, path: str, answer: Any
) -> None:
    look = fake.look
    fake.look = lambda asked: answer if asked == path else look(asked)  # type: ignore[method-assign]
    start()
    fake.turn("hello", "hi", 5_000)
    eventually(lambda: server.events("turn.ended"), "the turn")
