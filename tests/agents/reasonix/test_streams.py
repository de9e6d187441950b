"""Streams of the real Reasonix, as recorded and trimmed, through the bridge and the fold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.agents.reasonix.session import Session
from tests.core.story import Story, wire_event

STREAMS = Path(__file__).parent / "streams"


def told(name: str) -> list[dict[str, Any]]:
    """All events of the stream's one session."""
    events: list[dict[str, Any]] = []
    session: Session | None = None
    for line in (STREAMS / name).read_text("utf-8").splitlines():
        row = json.loads(line)
        frame, now = row["frame"], row["t"]
        if "sessionId" not in frame:
            continue
        session = session or Session(frame["sessionId"], {"facts": {}})
        # Whatever a restart of the bridge keeps is enough to go on.
        session = Session(session.id, json.loads(json.dumps(session.state())))
        events += [*session.tick(now), *session.frame(frame, now)]
    return events


def story(events: list[dict[str, Any]]) -> Story:
    found = Story().say("chat.opened", model="fake-small", window=30_000)
    start = events[0]["ts"] - 1_000
    for event in events:
        fields = {key: value for key, value in event.items() if key not in ("text", "chat")}
        found.put(wire_event(**fields, seq=found.seq + 1), at=event["ts"] - start + 10_000)
    return found


@pytest.mark.parametrize("name", ["first-session.jsonl", "broken-turns.jsonl", "pressure.jsonl"])
def test_every_event_is_one_of_the_protocol_and_none_is_lost(name: str) -> None:
    events = told(name)
    story(events)
    assert [event for event in events if event["type"] == "gap"] == []
    sent = [event["request"] for event in events if event["type"] == "request.sent"]
    ended = [e["request"] for e in events if e["type"] in ("model.replied", "model.failed")]
    assert sent == ended


def test_a_first_session_is_seen_as_it_was() -> None:
    events = told("first-session.jsonl")
    page = story(events)
    prompts = [
        event["usage"]["input"]
        for event in events
        if event["type"] == "model.replied" and "usage" in event
    ]
    # Four sends of one request count once: 5,129, not their sum of 20,516.
    assert prompts == [4946, 4994, 5108, 5129, 5777, 10049, 14321, 18593]
    outcomes = [event["outcome"] for event in events if event["type"] == "turn.ended"]
    assert outcomes == ["answered", "answered", "error", *["answered"] * 4]
    assert page.state.replies.empty_total == 4
    assert page.row.window.value == 30_000
    views = [(a.outcome.value, a.before, a.after) for a in page.state.compactions.recent]
    assert views == [("reduced", 22469, 8486), ("no_progress", 8486, 8486)]


def test_an_overflow_that_reasonix_calls_malformed_is_one() -> None:
    events = told("broken-turns.jsonl")
    failed = next(n for n, event in enumerate(events) if event["type"] == "model.failed")
    page = story(events[: failed + 1])
    assert page.state.requests.overflow
    assert page.state.limits.proven == 30_000


def test_a_provider_that_is_down_is_four_failed_calls_and_a_cancelled_turn() -> None:
    events = told("broken-turns.jsonl")
    errors = [event["error"] for event in events if event["type"] == "model.failed"]
    assert errors == ["invalid", *["other"] * 4]
    outcomes = [event["outcome"] for event in events if event["type"] == "turn.ended"]
    assert outcomes == ["error", "cancelled"]


def test_a_fold_under_pressure_and_its_failures_by_hand_are_told_apart() -> None:
    page = story(told("pressure.jsonl"))
    views = [(a.trigger, a.outcome.value, a.before, a.after) for a in page.state.compactions.recent]
    assert views == [
        ("proactive", "reduced", 24325, 9666),
        ("manual", "summarizer_failed", 27547, 27547),
        ("manual", "unknown", None, None),
        ("manual", "reduced", 27547, 4605),
        # Below the trigger that the first one showed: nothing was due.
        ("manual", "not_needed", 4605, 4605),
    ]
    assert page.row.latches == ()
