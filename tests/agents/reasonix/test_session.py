"""One session's frames where they are odd: late, missing, out of turn, of another version."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.agents.reasonix.attempts import GRACE_MS, LEASE_S
from ctxhealth.agents.reasonix.failures import model_error, summarizer_error
from ctxhealth.agents.reasonix.session import Session


def session(**kept: Any) -> Session:
    return Session("s", {"facts": {}, **kept})


def feed(found: Session, *frames: dict[str, Any], now: int = 1_000) -> list[dict[str, Any]]:
    return [event for frame in frames for event in found.frame(frame, now)]


def attempt(id: str, action: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "stream_attempt", "streamAttempt": {"id": id, "action": action, **fields}}


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def test_a_frame_that_was_counted_as_missed_is_not_told_again() -> None:
    found = session(seq=10, turn="t")
    message = {"kind": "message", "messageId": "m", "text": "late", "seq": 9}
    assert feed(found, message) == []
    assert found.seq == 10
    assert types(feed(found, {**message, "seq": 11})) == ["message.added"]


def test_numbers_that_begin_anew_are_another_process() -> None:
    found = session(seq=10)
    assert types(feed(found, {"kind": "turn_started", "turnId": "t", "seq": 1})) == ["turn.started"]
    assert found.seq == 1


def test_a_hole_is_a_gap_unless_reasonix_made_it() -> None:
    found = session(seq=10, turn="t")
    broken = attempt("a", "commit", reason="interrupted")
    assert feed(found, {**broken, "seq": 12}) == []
    events = feed(found, {"kind": "turn_phase", "seq": 16})
    assert [(event["type"], event["count"]) for event in events] == [("gap", 3)]


def test_the_usage_of_replays_is_no_load_where_one_call_s_is_not_told() -> None:
    usage = {"kind": "usage", "usage": {"promptTokens": 20_516, "source": "executor"}}
    text = {"kind": "message", "messageId": "m", "text": "fine"}
    for number, told in ((4, None), (1, 20_516)):
        begin = attempt("a", "begin", attempt=number)
        [replied] = [
            event
            for event in feed(session(turn="t"), begin, usage, text, attempt("a", "commit"))
            if event["type"] == "model.replied"
        ]
        assert (replied.get("usage") or {}).get("input") == told


def test_an_end_without_a_word_waits_a_moment_for_its_receipt() -> None:
    found = session()
    started = {"kind": "compaction_started", "compaction": {"trigger": "manual"}}
    assert types(feed(found, started)) == ["compaction.started"]
    assert feed(found, {"kind": "compaction_done", "compaction": {}}) == []
    assert found.tick(1_000 + GRACE_MS - 1) == []
    [finished] = found.tick(1_000 + GRACE_MS)
    assert (finished["reported"], finished.get("before")) == ("failed", None)
    assert found.tick(9_000_000) == []


@pytest.mark.parametrize("how", ["turn", "call", "lease", "another"])
def test_an_attempt_whose_end_was_not_seen_is_over_and_unknown(how: str) -> None:
    found = session()
    started = {"kind": "compaction_started", "compaction": {"trigger": "pressure"}}
    feed(found, started)
    ends = {
        "turn": lambda: feed(found, {"kind": "turn_started", "turnId": "t"}),
        "call": lambda: feed(found, attempt("a", "begin")),
        "lease": lambda: found.tick(1_000 + LEASE_S * 1_000),
        "another": lambda: feed(found, started, now=2_000),
    }
    finished = ends[how]()[0]
    assert (finished["type"], finished["reported"]) == ("compaction.finished", "unseen")
    assert "summarizer" not in finished and "after" not in finished


def test_a_call_whose_end_was_not_seen_is_answered_with_nothing_known() -> None:
    found = session(turn="t")
    feed(found, attempt("a", "begin"))
    events = feed(found, {"kind": "turn_done", "turnId": "t", "status": "completed"})
    assert events[0]["type"] == "model.replied"
    assert "usage" not in events[0] and "content" not in events[0]


def test_warnings_of_reasonix_are_notes_and_hints_are_not() -> None:
    notice = {"kind": "notice", "text": "the disk is full", "level": "warn"}
    [note] = feed(session(), notice, {**notice, "level": "info"})
    assert (note["level"], note["text"]) == ("warning", "Reasonix: the disk is full")


def test_frames_of_no_known_kind_say_nothing() -> None:
    odd: list[dict[str, Any]] = [
        {}, {"kind": 7}, {"kind": "usage"}, {"kind": "usage", "usage": "much"},
        {"kind": "tool_result"}, {"kind": "context_maintenance"}, {"kind": "stream_attempt"},
        {"kind": "message", "text": "whose"}, {"kind": "tool_dispatch", "tool": {"name": "x"}},
    ]  # fmt: skip
    assert feed(session(), *odd) == []


@pytest.mark.parametrize(
    ("diagnostic", "text", "error"),
    [
        ({"kind": "request", "status": 400}, "", "invalid"),
        ({"kind": "x", "status": 429}, "", "rate_limit"),
        ({}, "status 503: down", "provider"),
        ({"kind": "cancelled"}, "HTTP 400", "cancelled"),
        ({"kind": "network"}, "", "network"),
        ({"kind": "temporary"}, "", "other"),
    ],
)
def test_the_kind_of_a_failure_is_read_from_what_is_told(
    diagnostic: dict[str, Any], text: str, error: str
) -> None:
    assert model_error(diagnostic, text)[0] == error


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("context summary failed: summarizer returned empty output", "empty"),
        ("fake: status 500: boom", "provider"),
        ('status 402: {"code": "insufficient_quota"}', "quota"),
        ("context deadline exceeded", "timeout"),
        ("summary output was truncated", "truncated"),
        ("status 401: no", "auth"),
        ("candidate would not reduce tokens (8722 >= 8486)", None),
        ("no foldable region remains", None),
        ("", None),
    ],
)
def test_a_summarizer_s_failure_has_its_class(text: str, error: str | None) -> None:
    assert summarizer_error(text) == error
