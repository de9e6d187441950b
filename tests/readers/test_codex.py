"""Codex rollouts: which counts are loads, how turns begin and end, what is in the context."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxhealth.readers.codex import CodexReader
from tests.readers.rollout import THREAD, WINDOW, Rollout, read, usage_of
from tests.readers.session import loads, of


def outcomes(events: list[Any]) -> list[str]:
    return [event["outcome"] for event in of(events, "turn.ended")]


@pytest.mark.parametrize("old", [False, True])
def test_each_reply_is_told_once_with_the_last_usage_and_never_the_total(old: bool) -> None:
    rollout = Rollout(old=old)
    rollout.begin()
    rollout.call("call_1")
    rollout.used(17_088)
    rollout.result("call_1")
    rollout.say("Carrots.")
    rollout.used(18_686)
    rollout.end()
    rollout.turn(19_500)
    _, events = read(rollout)
    assert loads(events) == [17_088, 18_686, 19_500]
    assert len(of(events, "request.sent")) == 3
    assert outcomes(events) == ["answered", "answered"]
    usage = of(events, "model.replied")[0]["usage"]
    assert usage == {
        "dialect": "codex", "input": 17_088, "cache_read": 8_544, "output": 40, "reasoning": 0,
        "total": 17_128,
    }  # fmt: skip


def test_the_same_usage_for_another_request_is_another_reply() -> None:
    rollout = Rollout(old=True)
    rollout.turn(20_000)
    rollout.turn(20_000)
    assert loads(read(rollout)[1]) == [20_000, 20_000]


def test_a_late_count_of_a_reply_that_has_its_own_usage_row_is_no_second_reply() -> None:
    rollout = Rollout()
    rollout.begin()
    rollout.call("call_1")
    rollout.add("token_usage_record", usage=usage_of(9_000, 40), response_id="resp_1")
    rollout.result("call_1")
    rollout.count(usage_of(9_000, 40))
    rollout.say("Carrots.")
    rollout.used(9_400)
    rollout.end()
    _, events = read(rollout)
    assert loads(events) == [9_000, 9_400]
    told = [event["type"] for event in events]
    result = next(at for at, event in enumerate(events) if event.get("answers"))
    assert told.index("model.replied") < result


def test_the_window_is_the_one_that_the_client_goes_by() -> None:
    rollout = Rollout()
    rollout.turn(9_000)
    rollout.turn(9_500)
    updates = of(read(rollout)[1], "chat.updated")
    assert [event["window"] for event in updates if "window" in event] == [WINDOW]
    assert [event["model"] for event in updates if "model" in event] == ["gpt-5.3-codex"]


def test_a_total_without_parts_is_no_load_and_above_the_window_it_is_told_as_the_gauge() -> None:
    rollout = Rollout(old=True)
    rollout.turn(209_950)
    rollout.estimate(940_499)
    reader, events = read(rollout)
    assert loads(events) == [209_950]
    (gauge,) = of(events, "usage.update")
    assert (gauge["used"], gauge["size"]) == (940_499, WINDOW)
    assert reader.counts["estimates"] == 1


def test_a_count_of_nothing_at_all_is_no_reading() -> None:
    rollout = Rollout()
    rollout.turn(31_000)
    rollout.begin("Which bed is empty?")
    rollout.count(usage_of(0, 0))
    error = {"message": "Codex ran out of room in the model's context window.",
             "codex_error_info": "context_window_exceeded"}  # fmt: skip
    rollout.end(None, error)
    _, events = read(rollout)
    assert loads(events) == [31_000]
    assert not of(events, "usage.update")
    (failed,) = of(events, "model.failed")
    assert (failed["error"], failed["code"]) == ("overflow", "context_window_exceeded")
    assert outcomes(events) == ["answered", "error"]


@pytest.mark.parametrize(
    ("info", "message", "error", "status"),
    [
        ("internal_server_error", "We're at capacity.", "provider", None),
        ("usage_limit_exceeded", "Quota exceeded.", "quota", None),
        ({"response_too_many_failed_attempts": {"http_status_code": 429}},
         "exceeded retry limit, last status: 429 Too Many Requests", "rate_limit", 429),
        ({"http_connection_failed": {"http_status_code": 402}},
         "unexpected status 402 Payment Required", "quota", 402),
        ({"response_stream_connection_failed": {"http_status_code": None}}, "gone",
         "network", None),
        ("other", '{"error": {"message": "prompt is too long: 40961 tokens > 40000 maximum"}}',
         "overflow", None),
        ("other", "stream disconnected before completion: closed", "network", None),
        ("unauthorized", "log in again", "auth", None),
        (None, "no idea", "other", None),
        ({"two": {}, "words": {}}, "no idea", "other", None),
    ],
)  # fmt: skip
def test_a_failed_call_has_the_class_that_the_client_or_its_words_name(
    info: Any, message: str, error: str, status: int | None
) -> None:
    rollout = Rollout()
    rollout.turn(9_000)
    rollout.begin()
    rollout.end(None, {"message": message, "codex_error_info": info})
    _, events = read(rollout)
    (failed,) = of(events, "model.failed")
    assert (failed["error"], failed.get("status")) == (error, status)
    assert not of(events, "compaction.finished")
    assert of(events, "request.sent")[-1]["request"] == failed["request"]


def test_an_error_row_of_older_versions_ends_the_turn() -> None:
    rollout = Rollout(old=True)
    rollout.begin()
    rollout.event("error", message="server overloaded", codex_error_info="server_overloaded")
    _, events = read(rollout)
    assert [event["error"] for event in of(events, "model.failed")] == ["provider"]
    assert outcomes(events) == ["error"]


def test_a_reply_of_nothing_is_an_empty_reply_with_its_usage() -> None:
    rollout = Rollout()
    rollout.begin()
    rollout.used(9_700, 0)
    rollout.end(None)
    rollout.turn(10_100)
    _, events = read(rollout)
    assert loads(events) == [9_700, 10_100]
    assert of(events, "model.replied")[0]["content"] == {}
    assert outcomes(events) == ["silent", "answered"]


def test_a_reply_that_was_cut_names_the_reason_and_is_no_failed_request() -> None:
    rollout = Rollout()
    rollout.begin()
    rollout.say("Water bed 1 on Mon", status="incomplete")
    rollout.used(9_700, 4_096)
    error = {"message": "Incomplete response returned, reason: max_output_tokens",
             "codex_error_info": "other"}  # fmt: skip
    rollout.end(None, error)
    _, events = read(rollout)
    (reply,) = of(events, "model.replied")
    assert (reply["finish"], reply["usage"]["input"]) == ("max_output_tokens", 9_700)
    assert not of(events, "model.failed")
    assert outcomes(events) == ["error"]


def test_an_aborted_turn_is_cancelled() -> None:
    rollout = Rollout()
    rollout.begin()
    rollout.event("turn_aborted", reason="interrupted")
    assert outcomes(read(rollout)[1]) == ["cancelled"]


def test_a_call_without_a_result_at_the_end_is_unfinished() -> None:
    rollout = Rollout(old=True)
    rollout.begin()
    rollout.call("call_1")
    rollout.used(143_372)
    _, events = read(rollout)
    assert not of(events, "turn.ended") and not of(events, "note")
    assert [e for e in of(events, "message.added") if e.get("calls") == ["call_1"]]
    assert not [e for e in of(events, "message.added") if "answers" in e]


def test_a_new_task_closes_what_the_one_before_left_open() -> None:
    rollout = Rollout(old=True)
    rollout.begin()
    rollout.call("call_1")
    rollout.used(143_372)
    rollout.turn(144_000)
    _, events = read(rollout)
    assert outcomes(events) == ["cancelled", "answered"]
    (closed,) = [e for e in of(events, "message.added") if e.get("answers") == ["call_1"]]
    assert closed["name"] == "no result" and closed["chars"] == 0


def test_what_the_program_adds_in_the_users_name_begins_no_turn_and_gives_no_title() -> None:
    rollout = Rollout()
    rollout.task()
    content = [{"type": "input_text", "text": "<environment_context>here</environment_context>"}]
    rollout.item("message", role="user", content=content)
    rollout.prompt("What grows in bed 3?")
    rollout.say("Carrots.")
    rollout.used(9_000)
    rollout.end()
    _, events = read(rollout)
    assert len(of(events, "turn.started")) == 1
    assert [e["title"] for e in of(events, "chat.updated") if "title" in e] == [
        "What grows in bed 3?"
    ]
    added = {event["excerpt"]: event for event in of(events, "message.added")}
    assert "turn" not in added["<environment_context>here</environment_context>"]
    assert added["What grows in bed 3?"]["turn"] == of(events, "turn.started")[0]["turn"]


def test_a_prompt_while_the_turn_runs_joins_it() -> None:
    rollout = Rollout()
    rollout.begin()
    rollout.call("call_1")
    rollout.used(9_000)
    rollout.result("call_1")
    rollout.prompt("And bed 4?")
    rollout.say("Beans.")
    rollout.used(9_500)
    rollout.end()
    _, events = read(rollout)
    assert len(of(events, "turn.started")) == len(of(events, "turn.ended")) == 1


def test_a_spawned_thread_is_a_child_where_nobody_waits() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "parent-1", "depth": 1}}}
    rollout = Rollout(source=source)
    rollout.turn(9_000)
    _, events = read(rollout)
    assert events[0]["parent"] == "parent-1"
    assert [event["kind"] for event in of(events, "turn.started")] == ["task"]


def test_items_carry_characters_and_what_is_encrypted_carries_none() -> None:
    rollout = Rollout()
    rollout.begin()
    rollout.item("reasoning", summary=[], encrypted_content="x" * 5_000)
    rollout.item("custom_tool_call", name="apply_patch", input="y" * 300, call_id="call_2")
    rollout.item("web_search_call", action={"query": "carrots"})
    rollout.used(9_000)
    rollout.item("custom_tool_call_output", call_id="call_2", output=[{"text": "done"}])
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    rollout.item("message", role="user", content=[{"type": "input_text", "text": "See"}, image])
    rollout.item("ghost_snapshot", ghost_commit={})
    _, events = read(rollout)
    items = {(e["kind"], e.get("name")): e for e in of(events, "message.added")}
    assert "chars" not in items["reasoning", None]
    assert items["tool_call", "apply_patch"]["chars"] == 300
    assert "calls" not in items["tool_call", "web_search_call"]
    assert items["tool_result", None]["answers"] == ["call_2"]
    assert "chars" not in items["image", "added by the program"]
    assert len(items) == 7
    content = of(events, "model.replied")[0]["content"]
    assert content == {"tool_calls": 2, "thinking_chars": 1}


def test_a_file_that_begins_in_the_middle_is_read_under_its_name() -> None:
    rollout = Rollout()
    rollout.turn(9_000)
    del rollout.rows[0]
    reader = CodexReader("rollout-7")
    events = [event for line in rollout.lines() for event in reader.feed(line)] + reader.finish()
    assert (reader.chat, loads(events)) == ("rollout-7", [9_000])


def test_a_forked_file_that_repeats_another_threads_head_stays_one_chat() -> None:
    rollout = Rollout()
    rollout.add("session_meta", id="other", cwd="/")
    rollout.turn(9_000)
    reader, events = read(rollout)
    assert reader.chat == THREAD
    assert len(of(events, "chat.opened")) == 1


def test_a_history_written_again_counts_once() -> None:
    rollout = Rollout()
    rollout.turn(9_000)
    rollout.rows += rollout.rows[:]
    reader, events = read(rollout)
    assert loads(events) == [9_000]
    assert reader.counts["replayed"] == len(rollout.rows) // 2


def test_damaged_lines_are_counted_and_what_is_whole_is_read() -> None:
    rollout = Rollout()
    rollout.turn(9_000)
    first = rollout.lines()
    rollout.turn(9_500)
    lines = [b'{"timestamp":"2026', *first, b"rubbish", b"[1]", b'{"payload":{}}', b""]
    lines.append(rollout.lines()[len(first)] + rollout.lines()[len(first) + 1])
    lines += rollout.lines()[len(first) + 2 :]
    reader = CodexReader()
    events = [event for line in lines for event in reader.feed(line)] + reader.finish()
    assert loads(events) == [9_000, 9_500]
    assert reader.counts["unreadable"] == len(of(events, "note")) == 4


def test_a_live_reply_is_told_when_no_compaction_can_follow_any_more() -> None:
    rollout = Rollout()
    rollout.begin()
    rollout.say("Carrots.")
    rollout.used(9_000)
    reader = CodexReader()
    events = [event for line in rollout.lines() for event in reader.feed(line)]
    assert loads(events) == [] and reader.waiting
    assert loads(reader.settle(500)) == []
    assert loads(reader.settle(2_000)) == [9_000] and not reader.waiting


def test_a_saved_place_goes_on_as_if_nothing_had_happened() -> None:
    rollout = whole()
    expected = read(rollout)[1]
    reader, events = CodexReader(), []
    for line in rollout.lines():
        events += reader.feed(line)
        state = json.loads(json.dumps(reader.snapshot()))
        reader = CodexReader()
        reader.restore(state)
    assert events + reader.finish() == expected


def test_a_place_of_another_version_is_refused() -> None:
    state = CodexReader().snapshot()
    with pytest.raises(ValueError, match="another reader or version"):
        CodexReader().restore({**state, "version": 99})


def whole() -> Rollout:
    """Everything at once: calls, compactions of all kinds, a failure, damaged order."""
    rollout = Rollout()
    rollout.begin()
    rollout.call("call_1")
    rollout.used(9_000)
    rollout.result("call_1")
    rollout.say("Carrots.")
    rollout.used(200_000)
    rollout.end()
    rollout.task(context=False)
    rollout.summarise(200_300)
    rollout.estimate(6_100)
    rollout.prompt("And bed 4?")
    rollout.say("Beans.")
    rollout.used(7_000)
    rollout.end()
    rollout.task(context=False)
    rollout.summarise(7_100, output=0)
    rollout.end(None)
    rollout.turn(6_000)
    rollout.begin("Next?", context=False)
    rollout.end(None, {"message": "no", "codex_error_info": "internal_server_error"})
    return rollout
