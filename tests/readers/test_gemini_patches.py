"""Gemini CLI sessions whose rows patch the history: compressions nobody was told of, results."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxhealth.cli.replayed import Folded, Replay
from ctxhealth.readers.base import Event
from ctxhealth.readers.gemini import GeminiReader

from .gemini_session import GeminiSession, read

SNAPSHOT = "<state_snapshot>\n<overall_goal>Tidy the garden</overall_goal>"
SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "cli"


def of(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]


def compressed() -> GeminiSession:
    """A second turn is compressed within its loop of tools."""
    session = GeminiSession()
    session.turn(500_000, "Read the notes.")
    session.add("user", "Read the plan.")
    session.reply(700_000, "", session.call("k1"))
    session.patch(SNAPSHOT, "Got it.", "Read the plan.")
    session.responded("k1")
    session.reply(9_200)
    return session


def folded(data: bytes) -> Folded:
    replay = Replay()
    _, events = read(data)
    for event in events:
        replay.take({**event, "chat": "c"})
    return replay.chats["c"]


def test_a_history_that_begins_with_its_summary_was_compressed() -> None:
    _, events = read(compressed().rows())
    (told,) = of(events, "compaction.finished")
    assert (told["before"], told.get("after"), told["scope"]) == (700_000, None, "prompt")
    assert told["trigger"] == "proactive"


def test_only_what_stood_before_the_running_turn_is_gone() -> None:
    _, events = read(compressed().rows())
    (told,) = of(events, "compaction.finished")
    turns = [event["turn"] for event in of(events, "turn.started")]
    items = {item["id"]: item["turn"] for item in of(events, "message.added")}
    assert {items[id] for id in told["removed"]} == {turns[0]}


def test_the_next_reply_tells_what_it_freed_and_nothing_is_torn_or_lost() -> None:
    chat = folded(compressed().rows())
    (view,) = chat.changes.attempts.values()
    assert (view.outcome, view.before, view.after) == ("reduced", 700_000, 9_200)
    assert view.relief == "relieved"
    assert chat.changes.incidents_closed == []
    assert chat.state.severity != "critical"


def test_a_history_that_a_resume_repeats_is_told_once() -> None:
    session = compressed()
    session.patch(SNAPSHOT, "Got it.", "Read the plan.")
    session.turn(9_600)
    assert len(of(read(session.rows())[1], "compaction.finished")) == 1


def test_a_second_compression_is_one_more() -> None:
    session = compressed()
    session.patch(SNAPSHOT, "Got it.", id="snap0002-bbbb")
    session.turn(9_100)
    assert len(of(read(session.rows())[1], "compaction.finished")) == 2


def test_a_history_written_whole_without_a_summary_is_no_compression() -> None:
    session = GeminiSession()
    session.turn(9_000)
    session.patch("What grows?", "Carrots.")
    session.turn(9_400, f"What does {SNAPSHOT} mean?")
    assert of(read(session.rows())[1], "compaction.finished") == []


@pytest.mark.parametrize("first", ["patch", "words"])
def test_a_compression_that_was_told_as_well_counts_once(first: str) -> None:
    session = GeminiSession()
    session.turn(500_000)
    if first == "patch":
        session.patch(SNAPSHOT, "Got it.")
    session.add("info", "Chat history compressed from 490,000 to 120000 tokens.")
    if first == "words":
        session.patch(SNAPSHOT, "Got it.")
    session.turn(130_000)
    assert len(of(read(session.rows())[1], "compaction.finished")) == 1


def test_results_sent_as_a_message_are_no_prompt() -> None:
    session = GeminiSession()
    session.add("user", "Read the plan.")
    session.reply(9_000, "", session.call("k1"))
    session.responded("k1")
    session.reply(9_400)
    _, events = read(session.rows())
    assert [event["outcome"] for event in of(events, "turn.ended")] == ["answered"]
    results = [item for item in of(events, "message.added") if item["kind"] == "tool_result"]
    assert [item["answers"] for item in results] == [["k1"]]


def twice(*, whole: bool) -> GeminiSession:
    """A reply is written without its calls first, and again when they have run."""
    session = GeminiSession()
    session.add("user", "Read the plan.")
    session.reply(9_000, "")
    first = session.messages[-1]
    first["thoughts"] = []
    if whole:
        session.messages.append({**first, "toolCalls": [session.call("k1")]})
        session.responded("k1")
        session.reply(9_400)
    return session


def test_a_reply_whose_calls_are_written_later_is_not_empty() -> None:
    _, events = read(twice(whole=True).rows())
    assert [event["content"] for event in of(events, "model.replied")] == [
        {"tool_calls": 1},
        {"text_chars": 8, "thinking_chars": 19},
    ]
    assert [event["outcome"] for event in of(events, "turn.ended")] == ["answered"]
    assert len(of(events, "turn.started")) == 1


def test_while_they_run_nobody_knows_what_it_held() -> None:
    reader, events = read(twice(whole=False).rows())
    (told,) = of(events, "model.replied")
    assert told.get("content") is None
    assert of(events, "turn.ended") == []
    assert not reader.waiting


def test_a_reply_that_nothing_followed_up_was_empty() -> None:
    session = twice(whole=False)
    session.turn(9_100)
    _, events = read(session.rows())
    assert [event["outcome"] for event in of(events, "turn.ended")] == ["silent", "answered"]


def test_a_reply_with_words_is_told_as_soon_as_nothing_follows() -> None:
    session = GeminiSession()
    session.turn(9_000)
    reader = GeminiReader()
    for line in session.rows().split(b"\n"):
        reader.feed(line)
    assert reader.waiting
    assert of(reader.settle(1_000), "model.replied")
    assert not reader.waiting


def test_results_that_stand_nowhere_else_are_told() -> None:
    session = GeminiSession()
    session.add("user", "Read the plan.")
    session.reply(9_000, "", session.call("k1", output=None))
    session.responded("k1")
    session.reply(9_400)
    _, events = read(session.rows())
    results = [item for item in of(events, "message.added") if item["kind"] == "tool_result"]
    assert [(item["answers"], item["excerpt"]) for item in results] == [(["k1"], "three rows")]


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the recorded sessions are not here")
@pytest.mark.parametrize(
    ("name", "turns", "loads", "compactions"),
    [
        ("01-healthy", 3, [9_000, 9_400, 9_700, 10_100, 10_300], 0),
        ("02-auto-ok", 3, [9_000, 9_400, 700_000, 9_200, 9_600], 1),
    ],
)
def test_recorded_sessions(name: str, turns: int, loads: list[int], compactions: int) -> None:
    _, events = read((SAMPLES / f"gemini-cli-0.61.0-{name}.jsonl").read_bytes())
    assert len(of(events, "turn.started")) == turns
    assert [event["usage"]["input"] for event in of(events, "model.replied")] == loads
    assert len(of(events, "compaction.finished")) == compactions
