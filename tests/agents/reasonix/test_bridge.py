"""The bridge beside a faithful fake: what it tells, what it does, what it never does twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxhealth.agents.reasonix import run
from tests.agents.reasonix.conftest import Running, Start, bodies, options
from tests.agents.reasonix.fake import WINDOW, Fake
from tests.client.server import Server, eventually


def told(server: Server, kind: str, number: int = 1) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = eventually(
        lambda: (events := server.events(kind)) and len(events) >= number and events,
        f"{number} {kind}",
    )
    return found


def test_a_session_is_opened_with_what_reasonix_says_of_it(
    server: Server, fake: Fake, start: Start
) -> None:
    start()
    opened = told(server, "chat.opened")[0]
    assert opened["chat"] == fake.session
    assert (opened["model"], opened["provider"], opened["window"], opened["title"]) == (
        "fake-small", "fake", WINDOW, "A title",
    )  # fmt: skip
    assert told(server, "usage.update")[0]["used"] == fake.used
    assert server.hellos[0]["runtime"] == "reasonix"


def test_a_turn_is_told_with_each_call_s_own_numbers(
    server: Server, fake: Fake, start: Start
) -> None:
    start()
    call = fake.begin("hello")
    fake.usage(5_000, 10)
    fake.tool("call-1", "bash", "two lines")
    fake._stream(call, "commit")
    fake.answer(fake.attempt(), "fine", 5_200, replays=4)
    told(server, "turn.ended")
    assert bodies(server, "model.replied", "usage", "content") == [
        (
            {"dialect": "openai", "input": 5_000, "output": 10, "cache_read": 2_500},
            {"text_chars": 0, "tool_calls": 1, "thinking_chars": 0},
        ),
        (
            {"dialect": "openai", "input": 5_200, "output": 20, "cache_read": 2_600},
            {"text_chars": 4, "tool_calls": 0, "thinking_chars": 0},
        ),
    ]
    assert bodies(server, "message.added", "role", "kind", "calls", "answers") == [
        ("user", "text", None, None), ("assistant", "tool_call", ["call-1"], None),
        ("tool", "tool_result", None, ["call-1"]), ("assistant", "text", None, None),
    ]  # fmt: skip
    assert bodies(server, "turn.ended", "outcome") == [("answered",)]
    eventually(lambda: bodies(server, "usage.update", "used")[-1] == (5_220,))


def test_empty_replies_are_counted_and_the_turn_s_end_is_its_error(
    server: Server, fake: Fake, start: Start
) -> None:
    start()
    name = fake.begin("say nothing")
    for number in (2, 3):
        fake._stream(name, "discard", reason="empty")
        name = fake.attempt(number)
    fake.usage(5_129, 1, replays=3)
    fake.broken(name)
    said = "empty provider response: model returned a completed response with no content"
    fake.done("failed", err=said, diagnostic={"kind": "temporary"})
    told(server, "turn.ended")
    assert bodies(server, "reply.empty", "n", "prompt") == [(1, None), (2, None), (3, 5_129)]
    assert bodies(server, "turn.ended", "outcome", "error") == [("error", said)]
    assert server.events("gap") == []


def test_a_failed_call_keeps_the_provider_s_words(server: Server, fake: Fake, start: Start) -> None:
    start()
    name = fake.begin("too much")
    fake.broken(name)
    said = "fake: Malformed request (HTTP 400): maximum context length is 30000 tokens"
    fake.done("failed", err=said, diagnostic={"kind": "request", "status": 400})
    told(server, "turn.ended")
    assert bodies(server, "model.failed", "error", "status", "detail") == [("invalid", 400, said)]


def test_a_press_compacts_and_answers_with_the_receipt(
    server: Server, fake: Fake, start: Start
) -> None:
    start()
    fake.turn("hello", "fine", 24_000)
    told(server, "turn.ended")
    server.command("k1", "compact_summarize", fake.session)
    done = server.ended("k1")
    assert (done["state"], done["before"], done["after"]) == ("succeeded", 24_020, fake.used)
    finished = told(server, "compaction.finished")[0]
    assert (finished["reported"], finished["before"]) == ("applied", 24_020)
    assert finished["summarizer"] == {"calls": 1, "input": 24_020, "output": 300}
    path, headers = fake.posts[-1]
    assert (path, headers["X-Reasonix-Expected-Session-ID"]) == ("/compact", fake.session)


@pytest.mark.parametrize(
    ("what", "reported", "summarizer", "reason"),
    [
        ("come_to_nothing", "failed", {"calls": 1, "error": "empty"}, "returned empty output"),
        ("be_refused", "failed", {"error": "quota"}, "insufficient_quota"),
        ("find_nothing", "blocked", {"calls": 0}, "no_foldable_region"),
    ],
)
def test_a_compaction_that_comes_to_nothing_is_a_failed_press_and_one_attempt(
    what: str, reported: str, summarizer: dict[str, Any], reason: str,
    server: Server, fake: Fake, start: Start,
) -> None:  # fmt: skip
    start()
    fake.compact = getattr(fake, what)
    server.command("k1", "compact_summarize", fake.session)
    assert server.ended("k1")["state"] == "failed"
    [finished] = told(server, "compaction.finished")
    assert finished["reported"] == reported
    assert reason in finished["reason"]
    assert summarizer.items() <= finished["summarizer"].items()
    assert len(server.events("compaction.started")) == 1


def test_a_press_waits_for_the_turn_and_stop_ends_it(
    server: Server, fake: Fake, start: Start
) -> None:
    start()
    fake.begin("take your time")
    told(server, "request.sent")
    server.command("k1", "compact_summarize", fake.session)
    eventually(lambda: "waiting" in server.states("k1"))
    assert "/compact" not in [path for path, _ in fake.posts]
    # A changing command is open, so that a second one waits for its own turn.
    server.command("k2", "stop_turn", fake.session)
    assert server.ended("k2")["reason"] == "busy"
    server.send({"type": "cancel", "id": "k1"})
    assert server.ended("k1")["state"] == "cancelled"
    server.command("k3", "stop_turn", fake.session)
    assert server.ended("k3")["state"] == "succeeded"
    assert bodies(server, "turn.ended", "outcome") == [("cancelled",)]
    server.command("k4", "stop_turn", fake.session)
    assert (server.ended("k4")["state"], server.ended("k4")["reason"]) == ("refused", "stale")


@pytest.mark.parametrize("kind", ["clear_latch", "compact_fallback"])
def test_what_cannot_be_done_is_refused_with_the_way_by_hand(
    kind: str, server: Server, fake: Fake, start: Start
) -> None:
    start()
    server.command("k1", kind, fake.session, args={"latch": "L1"})
    refused = server.ended("k1")
    assert (refused["state"], refused["reason"]) == ("refused", "unsupported")
    assert "Force its own compaction" in refused["detail"]
    assert server.hellos[-1]["caps"]["commands"] == ["compact_summarize", "stop_turn"]
    assert fake.posts == []


def test_another_session_takes_the_commands_and_the_one_before_is_closed(
    server: Server, fake: Fake, start: Start
) -> None:
    start()
    before = fake.session
    fake.turn("hello", "fine", 5_000)
    told(server, "turn.ended")
    after = fake.switch()
    eventually(lambda: [e["chat"] for e in server.events("chat.opened")] == [before, after])
    assert [event["chat"] for event in server.events("chat.closed")] == [before]
    server.command("k1", "compact_summarize", before)
    assert server.ended("k1")["reason"] == "stale"
    assert fake.posts == []


def test_what_went_by_unseen_is_one_gap_and_its_messages_come_after_all(
    server: Server, fake: Fake, start: Start
) -> None:
    bridge = start()
    fake.turn("first", "one", 5_000)
    told(server, "turn.ended")
    bridge.stop()
    fake.turn("second", "two", 6_000)
    start()
    eventually(lambda: len(server.events("turn.ended")) == 2)
    assert bodies(server, "message.added", "excerpt") == [
        ("first",), ("one",), ("second",), ("two",),
    ]  # fmt: skip
    assert bodies(server, "gap", "count") == [(8,)]
    assert bodies(server, "turn.ended", "outcome") == [("answered",), ("answered",)]
    assert len(server.events("model.replied")) == 1


def test_a_restart_of_the_bridge_tells_nothing_twice(
    server: Server, fake: Fake, start: Start
) -> None:
    bridge = start()
    fake.turn("first", "one", 5_000)
    told(server, "usage.update", 2)
    bridge.stop()
    before = [event["type"] for event in server.stream()]
    again = start()
    fake.turn("second", "two", 6_000)
    told(server, "turn.ended", 2)
    again.stop()
    after = [event["type"] for event in server.stream()][len(before) :]
    assert after[0] == "usage.update"
    assert [kind for kind in after if kind in ("chat.opened", "gap")] == []
    assert after.count("turn.started") == 1


def test_a_turn_that_broke_with_reasonix_is_over_when_it_comes_back(
    server: Server, fake: Fake, start: Start
) -> None:
    bridge = start()
    fake.begin("a long one")
    told(server, "request.sent")
    fake.restart()
    told(server, "turn.ended")
    assert bodies(server, "turn.ended", "outcome") == [("cancelled",)]
    eventually(lambda: bridge.bridge.connected)
    fake.turn("again", "fine", 5_000)
    told(server, "turn.ended", 2)
    assert bodies(server, "turn.ended", "outcome")[-1] == ("answered",)
    assert "answers again" in bridge.said


def test_a_session_that_existed_before_is_followed_from_now_on(
    server: Server, fake: Fake, start: Start
) -> None:
    fake.turn("old", "older", 5_000)
    start()
    fake.turn("new", "newer", 6_000)
    told(server, "turn.ended")
    assert bodies(server, "message.added", "excerpt") == [("new",), ("newer",)]
    assert server.events("gap") == []


def test_a_lost_frame_is_a_gap_and_the_transcript_knows_better(
    server: Server, fake: Fake, start: Start
) -> None:
    start()
    fake.turn("first", "one", 5_000)
    call = fake.begin("second")
    told(server, "request.sent", 2)
    fake._record("assistant", "a thought")
    fake.seq += 2
    fake.answer(call, "two", 5_500)
    told(server, "gap")
    eventually(lambda: ("a thought",) in bodies(server, "message.added", "excerpt"))
    assert bodies(server, "gap", "count") == [(2,)]


def test_a_read_only_bridge_takes_no_commands(server: Server, fake: Fake, start: Start) -> None:
    start("--read-only", "--text", "none")
    fake.turn("secret words", "fine", 5_000)
    told(server, "turn.ended")
    assert server.hellos[0]["caps"]["read_only"] is True
    server.command("k1", "compact_summarize", fake.session)
    assert server.ended("k1")["state"] == "refused"
    assert "secret words" not in str(server.stream())


def test_a_wrong_token_ends_it_with_a_sentence(
    server: Server, fake: Fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = options(server, fake, tmp_path / "state")
    wrong.reasonix_token = "wrong"
    assert run(wrong) == 3
    assert "does not take this token" in capsys.readouterr().err


def test_what_is_no_reasonix_ends_it_with_a_sentence(
    server: Server, fake: Fake, tmp_path: Path
) -> None:
    fake.look = lambda path: None  # type: ignore[method-assign]
    bridge = Running(options(server, fake, tmp_path / "state"))
    eventually(lambda: bridge.ended is not None)
    bridge.stop()
    assert "is no Reasonix" in str(bridge.ended)


def test_a_missing_server_token_and_a_bad_address_are_said(
    server: Server, fake: Fake, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("CTXHEALTH_TOKEN", raising=False)
    given = options(server, fake, tmp_path / "state")
    given.token = None
    assert run(given) == 2
    assert "No token" in capsys.readouterr().err
    given.token = "t"
    for address in ("nonsense", "http://127.0.0.1:99999", "http://[::1"):
        given.reasonix = address
        assert run(given) == 2
        assert "--reasonix: " in capsys.readouterr().err
    given.reasonix, given.token = fake.url, "two words"
    assert run(given) == 2
    assert "--token: " in capsys.readouterr().err
