"""Claude Code's rows into events: replies, turns, failures, side chains."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxhealth.readers.claude_code import ClaudeCodeReader
from ctxhealth.readers.seen import SEEN_IDS
from tests.readers.session import SESSION, Session, call, check, loads, of, read, text, thinking


def ended(events: list[Any], chat: str | None = None) -> list[str]:
    return [event["outcome"] for event in of(events, "turn.ended", chat)]


def test_several_rows_of_one_reply_are_one_request() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 20_000, thinking("hm"), output=1)
    session.reply("m1", 20_000, text("Let me look."), output=2)
    session.reply("m1", 20_000, call("t1"), stop="tool_use", output=90)
    session.result("t1")
    session.answer("m2", 21_000)
    _, events = read(session.lines())
    assert loads(events) == [20_000, 21_000]
    assert len(of(events, "request.sent")) == 2
    first = of(events, "model.replied")[0]
    assert first["content"] == {"text_chars": 12, "tool_calls": 1, "thinking_chars": 2}
    assert (first["finish"], first["usage"]["output"]) == ("tool_use", 90)


def test_a_reply_is_told_before_the_results_of_its_calls_even_when_rows_come_between() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 20_000, call("t1"))
    session.result("t1")
    session.reply("m1", 20_000, call("t2"))
    session.result("t2")
    session.answer("m2", 21_000)
    _, events = read(session.lines())
    kinds = [e["kind"] if e["type"] == "message.added" else e["type"] for e in events]
    start = kinds.index("request.sent")
    assert kinds[start : start + 6] == [
        "request.sent", "model.replied", "tool_call", "tool_call", "tool_result", "tool_result",
    ]  # fmt: skip
    assert loads(events) == [20_000, 21_000]


def test_a_row_that_comes_after_its_reply_was_told_adds_its_item_and_no_request() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 20_000, call("t1"))
    reader = ClaudeCodeReader()
    events = [event for line in session.lines() for event in reader.feed(line)]
    assert not of(events, "model.replied")
    events += reader.settle(2_000)
    assert len(of(events, "model.replied")) == 1
    session.reply("m1", 20_000, call("t2"))
    events += reader.feed(session.lines()[-1]) + reader.finish()
    assert len(of(events, "model.replied")) == 1
    assert [item["calls"] for item in of(events, "message.added") if "calls" in item] == [
        ["t1"],
        ["t2"],
    ]
    check(events)


@pytest.mark.parametrize(
    ("block", "stop", "quiet_ms", "told"),
    [
        (text("Carrots."), "end_turn", 500, True),
        (call("t1"), "tool_use", 500, True),
        (call("t1"), None, 500, False),
        (call("t1"), None, 1_000, True),
        (text("Let me look."), None, 500, False),
        (text("Let me look."), None, 1_000, True),
        (thinking("hm"), None, 2_000, False),
        (thinking("hm"), None, 20_000, True),
    ],
)
def test_a_quiet_file_tells_a_reply_once_no_more_of_it_is_to_be_expected(
    block: dict[str, Any], stop: str | None, quiet_ms: int, told: bool
) -> None:
    session, reader = Session(), ClaudeCodeReader()
    session.prompt()
    session.reply("m1", 20_000, block, stop=stop)
    for line in session.lines():
        reader.feed(line)
    events = reader.settle(quiet_ms)
    assert bool(of(events, "model.replied")) is told
    # Whether more text ends the turn is waited for longer than the reply itself.
    over = bool(of(events, "turn.ended")) or block["type"] != "text"
    assert reader.waiting is not (told and over)


def growing(*rows: tuple[dict[str, Any], str | None]) -> list[dict[str, Any]]:
    """The events of one reply whose rows come further apart than a reply is waited for."""
    session, reader, events = Session(), ClaudeCodeReader(), []
    session.prompt()
    events += reader.feed(session.lines()[-1])
    for block, stop in rows:
        session.reply("m1", 20_000, block, stop=stop)
        events += reader.feed(session.lines()[-1]) + reader.settle(1_000)
        saved = json.loads(json.dumps(reader.snapshot()))
        reader = ClaudeCodeReader()
        reader.restore(saved)
    if rows[-1][0]["type"] == "tool_use":
        session.result("t1")
        session.answer("m2", 21_000)
        for line in session.lines()[-2:]:
            events += reader.feed(line)
    events += reader.finish()
    check(events)
    return events


def test_a_reply_that_grows_after_it_was_told_is_one_reply_of_one_turn() -> None:
    events = growing((text("Let me look."), None), (call("t1"), None))
    assert loads(events) == [20_000, 21_000]
    assert [(e["turn"], e["outcome"]) for e in of(events, "turn.ended")] == [
        (of(events, "turn.started")[0]["turn"], "answered")
    ]
    assert len(of(events, "request.sent")) == 2
    assert [item["kind"] for item in of(events, "message.added")] == [
        "text", "text", "tool_call", "tool_result", "text",
    ]  # fmt: skip


def test_a_reply_that_grows_by_its_end_ends_its_turn_at_once() -> None:
    session, reader = Session(), ClaudeCodeReader()
    session.prompt()
    session.reply("m1", 20_000, text("Car"))
    for line in session.lines():
        reader.feed(line)
    assert loads(reader.settle(1_000)) == [20_000]
    session.reply("m1", 20_000, text("rots."), stop="end_turn")
    events = reader.feed(session.lines()[-1])
    assert [event["outcome"] for event in of(events, "turn.ended")] == ["answered"]
    assert loads(events) == [] and not reader.waiting


def test_a_late_row_of_an_older_reply_says_nothing_of_the_turn_that_runs_now() -> None:
    session = Session()
    session.turn("m1", 20_000)
    session.prompt()
    session.reply("m2", 21_000, text("Let me look."))
    session.reply("m1", 20_000, text("More."), stop="end_turn")
    reader = ClaudeCodeReader()
    events = [event for line in session.lines() for event in reader.feed(line)]
    events += reader.settle(1_000)
    assert len(of(events, "turn.ended")) == 1
    assert loads(events) == [20_000, 21_000]


def test_a_busy_sub_agent_in_the_same_file_keeps_no_reply_waiting() -> None:
    session, side, reader = Session(), Session(), ClaudeCodeReader()
    session.prompt()
    session.reply("m1", 30_000, call("t1", "Task"))
    side.number = 500
    side.prompt("Look.", isSidechain=True, agentId="a1")
    data = {"type": "agent_progress", "agentId": "a1", "message": side.rows[0]}
    session.row("progress", data=data, parentToolUseID="t1")
    events = [event for line in session.lines() for event in reader.feed(line)]
    assert loads(events, SESSION) == [30_000]
    side.reply("s1", 9_000, text("Carrots."), isSidechain=True, agentId="a1")
    data = {"type": "agent_progress", "agentId": "a1", "message": side.rows[1]}
    session.row("progress", data=data, parentToolUseID="t1")
    session.result("t9")
    events = [event for line in session.lines()[-2:] for event in reader.feed(line)]
    assert loads(events, f"{SESSION}:agent-a1") == [9_000]


def test_a_synthetic_row_is_neither_a_load_of_0_nor_an_empty_reply() -> None:
    session = Session()
    session.turn("m1", 20_000)
    session.synthetic("No response requested.")
    session.turn("m2", 21_000)
    _, events = read(session.lines())
    assert loads(events) == [20_000, 21_000]
    assert [
        event["synthetic"] for event in of(events, "model.replied") if "synthetic" in event
    ] == [True]
    assert len(of(events, "request.sent")) == 2
    assert ended(events) == ["answered", "answered"]


def test_usage_of_zeros_only_is_no_reading() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 604, text("Hi."), stop="end_turn")
    for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
        session.rows[-1]["message"]["usage"][key] = 0
    _, events = read(session.lines())
    assert "usage" not in of(events, "model.replied")[0]


def test_time_never_steps_back_and_the_order_is_the_files() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 20_000, call("t1"))
    session.result("t1")
    session.rows[-1]["timestamp"] = "2026-10-01T10:00:01.000Z"
    session.answer("m2", 21_000)
    _, events = read(session.lines())
    late = next(item for item in of(events, "message.added") if item["kind"] == "tool_result")
    assert late["row_ts"] < late["ts"]
    assert loads(events) == [20_000, 21_000]


def test_the_chat_has_the_sessions_id_a_title_the_model_and_its_project() -> None:
    session = Session()
    session.prompt("What grows\n in bed 3?")
    session.answer("m1", 20_000)
    reader, events = read(session.lines())
    opened, titled, named = events[0], *of(events, "chat.updated")
    assert reader.chat == opened["chat"] == SESSION
    assert opened["labels"] == {
        "runtime": "claude-code", "project": "garden", "version": "2.1.300",
    }  # fmt: skip
    assert titled["title"] == "What grows in bed 3?"
    assert named["model"] == "claude-sonnet-4-5-20250929"
    assert "window" not in named


def test_a_summary_row_gives_the_title_and_the_suffix_of_the_model_is_kept() -> None:
    session = Session()
    session.rows.append({"type": "summary", "summary": "Garden plans", "leafUuid": "x"})
    session.row("attachment", attachment={"type": "model", "identity": {"modelId": "opus-4[1m]"}})
    session.prompt()
    session.answer("m1", 20_000, model="opus-4")
    _, events = read(session.lines())
    assert events[0]["title"] == "Garden plans"
    assert [e["model"] for e in of(events, "chat.updated")] == ["opus-4[1m]"]


def test_a_turn_without_any_sign_of_its_end_ends_with_the_next_prompt_or_the_files_end() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 20_000, text("Carrots."))
    session.prompt("And bed 2?")
    session.reply("m2", 20_500, text("Onions."))
    _, events = read(session.lines())
    assert ended(events) == ["answered", "answered"]
    assert [turn["kind"] for turn in of(events, "turn.started")] == ["user", "user"]


def test_a_turn_with_an_open_call_stays_open_at_the_files_end() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 20_000, text("Let me look."), call("t1"))
    _, events = read(session.lines())
    assert ended(events) == []
    assert of(events, "message.added")[-1]["calls"] == ["t1"]


def test_an_interrupted_turn_is_cancelled() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 20_000, call("t1"), stop="tool_use")
    session.prompt("[Request interrupted by user for tool use]")
    session.turn("m2", 20_500)
    _, events = read(session.lines())
    assert ended(events) == ["cancelled", "answered"]


def test_local_commands_start_no_turn_and_a_command_that_is_answered_does() -> None:
    session = Session()
    session.prompt("<command-name>/exit</command-name>")
    session.prompt("<local-command-stdout>Bye!</local-command-stdout>")
    session.prompt("<command-name>/plan</command-name>")
    session.prompt("Plan the garden.", isMeta=True)
    session.answer("m1", 20_000)
    _, events = read(session.lines())
    assert [turn["kind"] for turn in of(events, "turn.started")] == ["user"]
    assert ended(events) == ["answered"]


def test_a_cut_reply_and_its_continuation_are_two_requests_of_one_turn() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 21_000, text("Water bed"), stop="max_tokens")
    session.prompt("Output token limit hit. Resume directly", isMeta=True)
    session.answer("m2", 22_000)
    _, events = read(session.lines())
    assert [event["finish"] for event in of(events, "model.replied")] == ["max_tokens", "end_turn"]
    assert ended(events) == ["answered"]


def test_an_empty_reply_that_left_no_row_is_told_as_empty() -> None:
    session = Session()
    session.prompt()
    session.request("r1")
    session.prompt("[Your previous response had no visible output. Go on.]", isMeta=True)
    session.request("r2")
    session.answer("m2", 22_000, requestRef="r2")
    _, events = read(session.lines())
    first, second = of(events, "model.replied")
    assert (first["request"], first["content"]) == ("r1", {})
    assert "usage" not in first
    assert second["request"] == "r2"
    assert [event["request"] for event in of(events, "request.sent")] == ["r1", "r2"]
    assert ended(events) == ["answered"]


def test_two_empty_replies_end_the_turn_silent() -> None:
    session = Session()
    session.prompt()
    session.request("r1")
    session.prompt("[Your previous response had no visible output. Go on.]", isMeta=True)
    session.request("r2")
    session.billed(40_000)
    _, events = read(session.lines())
    assert [event["content"] for event in of(events, "model.replied")] == [{}, {}]
    assert ended(events) == ["silent"]


@pytest.mark.parametrize(
    ("words", "error", "status", "expected"),
    [
        ("API Error: 500 Internal server error.", "server_error", 500, "provider"),
        ("API Error: Request rejected (429) · rate limit", "rate_limit", 429, "rate_limit"),
        ("Credit balance is too low", "billing_error", 400, "quota"),
        ("Claude AI usage limit reached|1790000000", "unknown", None, "quota"),
        ("Invalid API key · Please run /login", "authentication_failed", None, "auth"),
        ("API Error: Request timed out.", "unknown", None, "timeout"),
        ("API Error: Connection error.", "unknown", None, "network"),
        ("API Error: 529 Overloaded", "server_error", 529, "provider"),
        ("API Error: 400 messages.1: wrong", "invalid_request", 400, "invalid"),
        ("Prompt is too long", "invalid_request", 400, "overflow"),
        ("Something else", "unknown", None, "other"),
    ],
)
def test_an_api_error_is_a_failed_request_of_its_class(
    words: str, error: str, status: int | None, expected: str
) -> None:
    session = Session()
    session.turn("m1", 20_000)
    session.prompt()
    session.api_error(words, error, status)
    _, events = read(session.lines())
    (failed,) = of(events, "model.failed")
    assert failed["error"] == expected
    assert of(events, "request.sent")[-1]["request"] == failed["request"]
    assert ended(events) == ["answered", "error"]
    assert loads(events) == [20_000]


def test_an_overflow_states_its_numbers_where_the_provider_does() -> None:
    session = Session()
    session.prompt()
    words = "Prompt is too long: prompt is too long: 204861 tokens > 200000 maximum"
    session.api_error(words, "invalid_request", 400)
    session.prompt()
    words = "API Error: input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"
    session.api_error(words, "invalid_request", 400)
    _, events = read(session.lines())
    assert [
        (e["error"], e["stated_prompt"], e["stated_window"]) for e in of(events, "model.failed")
    ] == [("overflow", 204_861, 200_000), ("overflow", 188_240, 200_000)]


def test_a_retry_of_the_programs_own_is_a_note_and_no_failed_turn() -> None:
    session = Session()
    session.prompt()
    session.row("system", subtype="api_error", error={"message": "overloaded"}, retryAttempt=2,
                maxRetries=10)  # fmt: skip
    session.answer("m1", 20_000)
    _, events = read(session.lines())
    (note,) = of(events, "note")
    assert (note["code"], note["text"].endswith("(2 of 10): overloaded")) == ("api_retry", True)
    assert ended(events) == ["answered"]


def test_a_history_written_again_is_not_counted_again() -> None:
    session = Session()
    for number in range(5):
        session.turn(f"m{number}", 20_000 + number)
    session.boundary(150_000)
    once, _ = read(session.lines())
    reader, events = read(session.lines() * 3)
    assert reader.counts["replayed"] == 2 * once.counts["rows"]
    assert loads(events) == [20_000, 20_001, 20_002, 20_003, 20_004]
    assert len(of(events, "compaction.finished")) == 1


def test_a_file_that_starts_in_the_middle_of_a_pair_is_a_remark_and_no_broken_pair() -> None:
    session = Session()
    session.result("t0")
    session.reply("m1", 20_000, call("t1"), stop="tool_use")
    session.result("t1")
    session.answer("m2", 20_500)
    _, events = read(session.lines())
    (note,) = of(events, "note")
    assert (note["code"], note["level"], note["count"]) == ("truncated_start", "info", 1)
    results = [item for item in of(events, "message.added") if item["kind"] == "tool_result"]
    assert [item.get("answers") for item in results] == [None, ["t1"]]


def test_an_orphan_result_later_in_the_file_is_told_as_it_stands() -> None:
    session = Session()
    session.turn("m1", 20_000)
    session.result("never-called")
    _, events = read(session.lines())
    assert of(events, "message.added")[-1]["answers"] == ["never-called"]
    assert not of(events, "note")


def test_images_carry_no_size_that_could_be_taken_for_text() -> None:
    session = Session()
    image = {"type": "image", "source": {"media_type": "image/png", "data": "A" * 4_000}}
    session.row("user", message={"role": "user", "content": [text("Look:"), image]})
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [text("seen"), image]}
    session.row("user", message={"role": "user", "content": [result]})
    _, events = read(session.lines())
    words, picture, seen = of(events, "message.added")
    assert picture["excerpt"] == "[image/png, 3,000 bytes]"
    assert not {"tokens", "chars", "bytes"} & set(picture)
    assert (words["chars"], seen["chars"], seen["images"]) == (5, 4, 1)


def test_a_huge_line_is_read_whole_and_told_in_a_small_event() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 20_000, call("t1"), stop="tool_use")
    session.result("t1", "x" * 20_000_000)
    session.answer("m2", 21_000)
    _, events = read(session.lines())
    huge = max(of(events, "message.added"), key=lambda item: item["chars"])
    assert huge["chars"] == 20_000_000
    assert len(json.dumps(huge)) < 4_000


def test_a_sub_agent_in_progress_rows_is_a_child_chat_that_ends_with_its_call() -> None:
    session, side = Session(), Session("a9e07000-0000-4000-8000-000000000000")
    session.prompt()
    session.reply("m1", 30_000, call("t1", "Task"), stop="tool_use")
    side.prompt("You look into bed 3.")
    side.answer("s1", 9_000, "It is empty.")
    for row in side.rows:
        data = {"type": "agent_progress", "agentId": "a1", "message": row}
        session.row("progress", data=data, parentToolUseID="t1")
    session.result("t1", "It is empty.")
    session.answer("m2", 31_000)
    _, events = read(session.lines())
    child = f"{SESSION}:agent-a1"
    assert [event["parent"] for event in of(events, "chat.opened", child)] == [SESSION]
    assert loads(events, child) == [9_000]
    assert loads(events, SESSION) == [30_000, 31_000]
    assert [turn["kind"] for turn in of(events, "turn.started", child)] == ["task"]
    assert len(of(events, "chat.closed", child)) == 1
    assert ended(events, SESSION) == ["answered"]


def test_side_chain_rows_of_older_versions_are_told_apart_by_their_chain() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 30_000, call("t1", "Task"), call("t2", "Task"), stop="tool_use")
    one = session.prompt("First task.", isSidechain=True, parentUuid=None)
    two = session.prompt("Second task.", isSidechain=True, parentUuid=None)
    session.answer("s1", 9_000, isSidechain=True, parentUuid=one)
    session.answer("s2", 8_000, isSidechain=True, parentUuid=two)
    session.result("t1")
    session.result("t2")
    session.answer("m2", 31_000)
    _, events = read(session.lines())
    children = {event["chat"]: loads(events, event["chat"]) for event in of(events, "chat.opened")
                if "parent" in event}  # fmt: skip
    assert sorted(children.values()) == [[8_000], [9_000]]
    assert loads(events, SESSION) == [30_000, 31_000]


def test_a_sub_agents_own_file_is_a_child_chat_and_its_rows_in_the_parent_are_left_out() -> None:
    side = Session()
    side.prompt("You look into bed 3.", isSidechain=True, agentId="a1")
    side.answer("s1", 9_000, isSidechain=True, agentId="a1")
    reader, events = read(side.lines())
    assert reader.chat == f"{SESSION}:agent-a1"
    assert of(events, "chat.opened")[0]["parent"] == SESSION
    assert loads(events) == [9_000]
    session = Session()
    session.prompt()
    data = {"type": "agent_progress", "agentId": "a1", "message": side.rows[1]}
    session.row("progress", data=data, parentToolUseID="t1")
    _, events = read(session.lines(), elsewhere=lambda agent: agent == "a1")
    assert [event["chat"] for event in of(events, "chat.opened")] == [SESSION]


def test_unknown_rows_and_absurd_values_are_passed_over() -> None:
    session = Session()
    session.turn("m1", 20_000)
    for absurd in (
        {"type": "next-years-row", "sessionId": SESSION},
        {"type": 7},
        {"type": "user", "uuid": "u1", "sessionId": SESSION, "message": 5, "timestamp": "soon"},
        {"type": "user", "uuid": "u2", "sessionId": SESSION, "message": {"content": [1, None]}},
        {"type": "assistant", "uuid": "u3", "sessionId": SESSION, "message": {"usage": "much"}},
        {"type": "assistant", "uuid": "u4", "sessionId": SESSION,
         "message": {"id": "m9", "model": [], "content": {"a": 1}, "usage": {"input_tokens": -4}}},
        {"type": "system", "subtype": "compact_boundary", "uuid": "u5", "sessionId": SESSION,
         "compactMetadata": {"trigger": 5, "preTokens": "many", "preservedSegment": []}},
        {"type": "progress", "data": {"type": "agent_progress", "agentId": 5}},
        {"type": "cost-state", "modelUsage": {"m": 5}},
        {"type": "attachment", "uuid": "u6", "sessionId": SESSION, "rendered": ["x"]},
    ):  # fmt: skip
        session.rows.append(absurd)
    session.turn("m2", 21_000)
    reader, events = read(session.lines())
    assert loads(events) == [20_000, 21_000]
    assert reader.counts["unreadable"] == 1
    (note,) = [event for event in of(events, "note") if event["code"] == "unreadable_line"]
    assert note["text"] == "Line 4 could not be read: an object without a type."


def test_many_unreadable_lines_are_counted_in_few_notes() -> None:
    session = Session()
    session.prompt()
    reader, events = read([*session.lines(), *[b"rubbish"] * 1_000])
    notes = of(events, "note")
    assert reader.counts["unreadable"] == 1_000
    assert sum(note["count"] for note in notes) == 1_000
    assert len(notes) <= 31


def test_unreadable_lines_before_the_chat_is_known_are_told_once_it_is() -> None:
    session = Session()
    session.turn("m1", 20_000)
    _, events = read([b"rubbish", b"\x00\x00", *session.lines()])
    assert sum(note["count"] for note in of(events, "note")) == 2
    assert events[0]["type"] == "chat.opened"


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_reader_saved_and_restored_between_any_two_lines_tells_the_same(data: Any) -> None:
    session = busy_session()
    lines = session.lines()
    _, whole = read(lines)
    cut = data.draw(st.integers(0, len(lines)))
    first = ClaudeCodeReader("session")
    events = [event for line in lines[:cut] for event in first.feed(line)]
    second = ClaudeCodeReader("session")
    second.restore(json.loads(json.dumps(first.snapshot())))
    events += [event for line in lines[cut:] for event in second.feed(line)] + second.finish()
    assert events == whole


def busy_session() -> Session:
    session = Session()
    session.turn("m1", 20_000)
    session.prompt()
    session.request("r2")
    session.reply("m2", 30_000, thinking("hm"), requestRef="r2")
    session.reply("m2", 30_000, call("t1", "Task"), requestRef="r2")
    row = {"type": "user", "uuid": "s1", "message": {"role": "user", "content": "Look."}}
    data = {"type": "agent_progress", "agentId": "a1", "message": row}
    session.row("progress", data=data, parentToolUseID="t1")
    session.result("t1")
    session.boundary(150_000, postTokens=2_000)
    session.answer("m3", 40_000)
    session.billed(90_000)
    session.prompt()
    session.api_error("Prompt is too long · automatic compaction failed: API Error: 500", "x")
    session.rows.append({"type": 3})
    session.prompt()
    return session


def test_a_snapshot_of_another_version_is_refused() -> None:
    reader = ClaudeCodeReader()
    with pytest.raises(ValueError, match="another reader or version"):
        reader.restore({**reader.snapshot(), "version": 0})


def test_the_readers_state_stays_bounded_however_long_the_file_is() -> None:
    def size(turns: int) -> int:
        session, reader = Session(), ClaudeCodeReader()
        for number in range(turns):
            session.turn(f"m{number}", 20_000 + number)
            for line in session.lines()[-2:]:
                reader.feed(line)
            if number % 100 == 99:
                session.boundary(150_000)
                for line in session.lines()[-2:]:
                    reader.feed(line)
            del session.rows[:-2]
        assert reader.counts["model.replied"] == turns
        state = reader.snapshot()
        state.pop("seen")
        return len(json.dumps(state))

    assert SEEN_IDS == 32_768
    assert size(3_000) < 1.2 * size(1_500)
