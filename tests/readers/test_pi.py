"""pi sessions: loads, turns, failures that are tried again, and compactions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxhealth.readers.pi import PiReader
from tests.readers.pi_session import SESSION, PiSession, read
from tests.readers.session import loads, of

OVERFLOW = (
    '400: {"message":"This model\'s maximum context length is 40000 tokens. However, your '
    'messages resulted in 41210 tokens.","code":"context_length_exceeded"}'
)
PAIRS = (
    '400 {"type":"error","error":{"type":"invalid_request_error","message":"messages.236: '
    '`tool_use` ids were found without `tool_result` blocks immediately after: toolu_019tYDrb"}}'
)


def outcomes(events: list[Any]) -> list[str]:
    return [event["outcome"] for event in of(events, "turn.ended")]


def test_the_load_is_input_with_both_caches_and_a_turn_ends_with_the_reply_that_stops() -> None:
    session = PiSession()
    session.prompt()
    session.call(20_000, "toolu_1")
    session.result("toolu_1")
    session.answer(20_500)
    session.turn(21_000)
    reader, events = read(session)
    assert reader.chat == SESSION
    assert loads(events) == [20_000, 20_500, 21_000]
    assert outcomes(events) == ["answered", "answered"]
    assert len(of(events, "turn.started")) == 2
    titles = [event["title"] for event in of(events, "chat.updated") if "title" in event]
    assert titles == ["What grows in bed 3?"]


def test_a_request_lasts_from_the_messages_own_time_to_its_row() -> None:
    session = PiSession()
    session.turn(20_000)
    _, events = read(session)
    (sent,), (replied,) = of(events, "request.sent"), of(events, "model.replied")
    assert replied["ts"] - sent["ts"] == 4_000


def test_a_failed_reply_with_usage_of_zero_is_no_load_and_may_be_tried_again() -> None:
    session = PiSession()
    session.turn(20_000)
    session.prompt()
    session.failure("500: overloaded")
    session.answer(20_400)
    _, events = read(session)
    assert loads(events) == [20_000, 20_400]
    assert [event["error"] for event in of(events, "model.failed")] == ["provider"]
    assert outcomes(events) == ["answered", "answered"]


def test_a_failure_that_nothing_follows_ends_the_turn() -> None:
    session = PiSession()
    session.prompt()
    session.failure("429: slow down")
    session.prompt("ok")
    session.failure("fetch failed")
    reader = PiReader()
    events = [event for line in session.lines() for event in reader.feed(line)]
    assert outcomes(events) == ["error"] and reader.waiting
    assert outcomes(reader.settle(2_000)) == []
    assert outcomes(reader.settle(20_000)) == ["error"] and not reader.waiting
    assert [event["error"] for event in of(events, "model.failed")] == ["rate_limit", "network"]


def test_a_refusal_that_names_a_broken_pair_keeps_its_words() -> None:
    session = PiSession(old=True)
    session.turn(20_000)
    session.prompt("yo")
    session.failure(PAIRS)
    (failed,) = of(read(session)[1], "model.failed")
    assert (failed["error"], failed["status"]) == ("invalid", 400)
    assert failed["code"] == "invalid_request_error"
    assert "toolu_019tYDrb" in failed["detail"] and failed["detail"].startswith("messages.236")


def test_a_stopped_reply_is_cancelled_and_its_calls_wait_for_nothing() -> None:
    session = PiSession(old=True)
    session.prompt()
    block = {"type": "toolCall", "id": "toolu_1", "name": "bash", "arguments": {}}
    session.reply(0, block, stop="aborted", output=0, errorMessage="Request was aborted.")
    session.turn(20_000)
    _, events = read(session)
    assert [event["error"] for event in of(events, "model.failed")] == ["cancelled"]
    assert outcomes(events) == ["cancelled", "answered"]
    assert not [event for event in of(events, "message.added") if "calls" in event]


def test_an_empty_reply_ends_a_silent_turn() -> None:
    session = PiSession()
    session.prompt()
    session.reply(2_500, output=0)
    session.prompt()
    session.reply(2_600, {"type": "thinking", "thinking": "hm"}, output=5)
    _, events = read(session)
    assert [reply["content"] for reply in of(events, "model.replied")] == [
        {}, {"thinking_chars": 2},
    ]  # fmt: skip
    assert outcomes(events) == ["silent", "silent"]


def test_a_cut_reply_keeps_its_reason() -> None:
    session = PiSession()
    session.prompt()
    session.answer(2_500, stop="length")
    _, events = read(session)
    assert of(events, "model.replied")[0]["finish"] == "length"
    assert outcomes(events) == ["answered"]


def test_a_compaction_leaves_an_unknown_load_and_names_no_trigger_that_is_not_known() -> None:
    session = PiSession()
    session.turn(33_000)
    kept = session.prompt("Which bed?")
    session.answer(33_460)
    usage = {"input": 6_200, "output": 280, "cacheRead": 0, "cacheWrite": 0}
    session.compaction(33_500, kept, usage=usage, fromHook=False)
    session.turn(2_200)
    _, events = read(session)
    (finished,) = of(events, "compaction.finished")
    assert not of(events, "compaction.started")
    assert "trigger" not in finished and "after" not in finished and "emptied" not in finished
    assert (finished["before"], finished["stated_before"]) == (33_500, 33_500)
    assert finished["summarizer"] == {"calls": 1, "input": 6_200, "output": 280}
    assert loads(events) == [33_000, 33_460, 2_200]
    before = [event["id"] for event in of(events, "message.added")][:2]
    assert finished["removed"] == before
    assert [e["kind"] for e in of(events, "message.added")].count("summary") == 1


def test_after_an_overflow_the_clients_own_number_is_a_guess_and_the_last_count_stands() -> None:
    session = PiSession()
    session.turn(31_000)
    kept = session.prompt("Which bed?")
    failed = session.failure(OVERFLOW)
    session.add("context_edit", targetId=failed, replacement=None)
    session.compaction(1_428, kept)
    session.answer(2_200)
    _, events = read(session)
    (finished,) = of(events, "compaction.finished")
    assert (finished["trigger"], finished["before"]) == ("reactive", 31_040)
    assert finished["stated_before"] == 1_428
    assert [event["error"] for event in of(events, "model.failed")] == ["overflow"]
    assert loads(events) == [31_000, 2_200]
    assert outcomes(events) == ["answered", "answered"]


def test_what_came_in_since_the_last_reply_counts_where_it_explains_the_number() -> None:
    session = PiSession()
    session.prompt()
    session.call(30_000, "toolu_1")
    kept = session.result("toolu_1", "x" * 40_000)
    session.compaction(40_000, kept)
    assert of(read(session)[1], "compaction.finished")[0]["before"] == 40_000


@pytest.mark.parametrize(
    "summary",
    [
        "",
        "\n\n---\n\n**Turn Context (split turn):**\n\n\n\n<read-files>\nnotes.md\n</read-files>",
        "<modified-files>\nplan.md\n</modified-files>\n",
    ],
)
def test_a_frame_without_a_summary_emptied_the_history(summary: str) -> None:
    session = PiSession()
    session.turn(33_000)
    session.compaction(33_040, session.prompt(), summary=summary)
    assert of(read(session)[1], "compaction.finished")[0]["emptied"] is True


def test_older_files_name_the_first_kept_row_by_its_number() -> None:
    session = PiSession(old=True)
    session.turn(33_000)
    session.turn(33_500)
    session.add("compaction", summary="Beds.", tokensBefore=33_540, firstKeptEntryIndex=4)
    _, events = read(session)
    (finished,) = of(events, "compaction.finished")
    assert finished["removed"] == ["e2", "e3"]


def test_the_system_prompt_stays_in_every_context() -> None:
    session = PiSession()
    tools = [{"name": "read", "description": "reads"}]
    session.message("system", content="", sections={"rules": "Be brief."}, toolsAdded=tools)
    session.turn(33_000)
    session.compaction(33_040, session.prompt())
    _, events = read(session)
    system = of(events, "message.added")[0]
    assert (system["role"], system["excerpt"].splitlines()[0]) == ("system", "Be brief.")
    assert system["id"] not in of(events, "compaction.finished")[0]["removed"]


def test_a_call_that_never_got_a_result_is_closed_by_the_next_prompt() -> None:
    session = PiSession()
    session.prompt()
    session.call(20_000, "toolu_1")
    session.turn(20_500)
    _, events = read(session)
    assert outcomes(events) == ["cancelled", "answered"]
    (closed,) = [e for e in of(events, "message.added") if e.get("answers") == ["toolu_1"]]
    assert closed["name"] == "no result"


def test_a_message_sent_while_tools_run_joins_the_turn() -> None:
    session = PiSession()
    session.prompt()
    session.call(20_000, "toolu_1")
    session.result("toolu_1")
    session.prompt("And bed 4?")
    session.rows[-1]["timestamp"] = session.rows[-2]["timestamp"]
    session.answer(20_500)
    _, events = read(session)
    assert outcomes(events) == ["answered"] and len(of(events, "turn.started")) == 1


def test_a_branched_session_is_as_old_as_the_rows_that_it_took_along() -> None:
    session = PiSession(old=True)
    session.turn(20_000)
    session.rows[0]["timestamp"] = "2026-10-01T18:00:00.000Z"
    _, events = read(session)
    assert events[0]["type"] == "chat.opened"
    assert events[0]["ts"] == min(event["ts"] for event in events)


def test_going_back_to_an_earlier_point_is_noted() -> None:
    session = PiSession()
    session.prompt()
    back = session.last
    session.answer(20_000)
    session.last = back
    session.answer(20_100)
    notes = of(read(session)[1], "note")
    assert [note["code"] for note in notes] == ["branched"]


def test_items_of_every_role_are_told_and_a_command_kept_from_the_model_is_not() -> None:
    session = PiSession()
    session.prompt()
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    session.message("user", content=[image])
    session.message("bashExecution", command="ls", output="notes.md", exitCode=0)
    session.message("bashExecution", command="env", output="SECRET", excludeFromContext=True)
    session.add("branch_summary", summary="We looked at beds.", fromId="00000001")
    session.add("custom_message", customType="note", content="Frost tonight.", display=True)
    _, events = read(session)
    told = [(e["role"], e["kind"], e.get("excerpt")) for e in of(events, "message.added")]
    assert told[1:] == [
        ("user", "image", "[image]"), ("user", "data", "ls\nnotes.md"),
        ("user", "summary", "We looked at beds."), ("user", "data", "Frost tonight."),
    ]  # fmt: skip


def test_a_name_of_the_session_becomes_the_title() -> None:
    session = PiSession()
    session.add("session_info", name="Garden notes")
    session.turn(20_000)
    titles = [e["title"] for e in of(read(session)[1], "chat.updated") if "title" in e]
    assert titles == ["Garden notes"]


def test_a_saved_place_goes_on_as_if_nothing_had_happened() -> None:
    session = PiSession()
    session.prompt()
    session.call(20_000, "toolu_1")
    kept = session.result("toolu_1")
    session.failure(OVERFLOW)
    session.compaction(1_428, kept)
    session.answer(2_200)
    session.prompt()
    session.failure("500: overloaded")
    expected = read(session)[1]
    reader, events = PiReader(), []
    for line in session.lines():
        events += reader.feed(line)
        state = json.loads(json.dumps(reader.snapshot()))
        reader = PiReader()
        reader.restore(state)
    assert events + reader.finish() == expected


def test_more_items_than_an_event_holds_are_told_by_what_is_left() -> None:
    session = PiSession()
    for number in range(1_300):
        session.turn(20_000 + number)
    kept = session.prompt("Keep me.")
    session.compaction(21_339, kept)
    _, events = read(session)
    (finished,) = of(events, "compaction.finished")
    (snapshot,) = of(events, "history.snapshot")
    assert "removed" not in finished
    assert [item["id"] for item in snapshot["order"]] == [kept]
