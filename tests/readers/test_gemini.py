"""Gemini CLI's sessions, as rows and as one document."""

from __future__ import annotations

import json

import pytest

from ctxhealth.readers.gemini import GeminiReader
from ctxhealth.readers.registry import sniff
from tests.readers.gemini_session import MODEL, SESSION, GeminiSession, read
from tests.readers.session import check, fit, of


def a_session() -> GeminiSession:
    session = GeminiSession()
    session.turn(12_000, "What grows in bed 3?")
    session.add("user", "And in bed 4?")
    session.reply(12_500, "", session.call("c1"), session.call("c2", "no bed", "error"))
    session.reply(13_000, "Leeks.")
    return session


def test_rows_and_both_forms_of_a_document_tell_the_same() -> None:
    session = a_session()
    _, rows = read(session.rows())
    _, indented = read(session.document())
    _, compact = read(session.document(indent=None))
    assert rows == indented == compact
    check(rows)
    fit(rows)


def test_the_session_opens_at_its_start_with_its_first_prompt_as_title() -> None:
    reader, events = read(a_session().document())
    assert reader.chat == SESSION
    assert events[0]["type"] == "chat.opened" and events[0]["ts"] == 1_790_848_800_000
    assert of(events, "chat.updated")[0]["title"] == "What grows in bed 3?"


def test_each_reply_is_one_request_with_its_usage() -> None:
    _, events = read(a_session().rows())
    replies = of(events, "model.replied")
    assert len(of(events, "request.sent")) == len(replies) == 3
    assert replies[0]["usage"] == {
        "dialect": "gemini", "input": 12_000, "output": 40, "cache_read": 6_000,
        "reasoning": 9, "total": 12_049,
    }  # fmt: skip
    assert replies[0]["model"] == MODEL
    assert replies[1]["content"] == {"tool_calls": 2, "thinking_chars": 19}


def test_calls_have_their_results_and_a_failed_one_says_so() -> None:
    _, events = read(a_session().rows())
    results = [item for item in of(events, "message.added") if item["kind"] == "tool_result"]
    assert [item["answers"] for item in results] == [["c1"], ["c2"]]
    assert [item.get("is_error") for item in results] == [None, True]


def test_a_reply_without_a_call_ends_its_turn() -> None:
    _, events = read(a_session().rows())
    assert [turn["outcome"] for turn in of(events, "turn.ended")] == ["answered", "answered"]


def test_a_reply_of_thoughts_alone_is_silent() -> None:
    session = GeminiSession()
    session.add("user", "Well?")
    session.reply(12_000, "")
    _, events = read(session.rows())
    assert [turn["outcome"] for turn in of(events, "turn.ended")] == ["silent"]


def test_tokens_of_zeros_are_no_reading() -> None:
    session = GeminiSession()
    session.turn(12_000)
    session.add("gemini", "Yes.", model=MODEL, tokens={"input": 0, "output": 0, "total": 0})
    _, events = read(session.rows())
    assert "usage" not in of(events, "model.replied")[1]


def test_a_compression_is_a_compaction_with_the_counts_it_states() -> None:
    session = GeminiSession()
    session.turn(500_000)
    session.add("info", "Chat history compressed from 490,000 to 120000 tokens.")
    session.turn(130_000)
    _, events = read(session.rows())
    (told,) = of(events, "compaction.finished")
    assert (told["before"], told["after"], told["scope"]) == (490_000, 120_000, "history")
    before = events[: events.index(told)]
    assert set(told["removed"]) == {item["id"] for item in of(before, "message.added")}


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ("Compression was not beneficial for this history size.", "failed_inflated"),
        ("Could not compress chat history due to a token counting error.", "failed_token_count"),
    ],
)
def test_a_compression_that_failed_says_why_and_removes_nothing(words: str, reported: str) -> None:
    session = GeminiSession()
    session.turn(500_000)
    session.add("info", words)
    _, events = read(session.rows())
    (told,) = of(events, "compaction.finished")
    assert told["reported"] == reported and "removed" not in told and "after" not in told


def test_other_information_is_nothing() -> None:
    session = GeminiSession()
    session.turn(12_000)
    plain = len(read(session.rows())[1])
    session.add("info", "Gemini CLI update available! It reads compressed files now.")
    session.add("warning", "You are close to your limit.")
    assert len(read(session.rows())[1]) == plain


def test_an_error_is_a_failed_request_and_ends_the_turn_unless_a_reply_follows() -> None:
    session = GeminiSession()
    session.add("user", "Go on.")
    session.add("error", "[API Error: You exceeded your current quota]")
    _, events = read(session.rows())
    assert [failed["error"] for failed in of(events, "model.failed")] == ["quota"]
    assert [turn["outcome"] for turn in of(events, "turn.ended")] == ["error"]
    session.reply(12_000, "There.")
    _, events = read(session.rows())
    assert [turn["outcome"] for turn in of(events, "turn.ended")] == ["answered"]


def test_a_message_that_is_written_again_with_its_results_counts_once() -> None:
    session = GeminiSession()
    session.add("user", "Read it.")
    session.reply(12_000, "", session.call("c1", None))
    whole = session.rows()
    session.messages[-1]["toolCalls"] = [session.call("c1")]
    _, events = read(whole + json.dumps(session.messages[-1]).encode() + b"\n")
    assert len(of(events, "model.replied")) == 1
    results = [item for item in of(events, "message.added") if item["kind"] == "tool_result"]
    assert [item["answers"] for item in results] == [["c1"]]


def test_a_longer_document_of_the_session_adds_only_what_is_new() -> None:
    session = a_session()
    reader, _ = read(session.document())
    saved = json.loads(json.dumps(reader.snapshot()))
    session.turn(14_000, "And in bed 5?")
    again = GeminiReader()
    again.restore(saved)
    events = [event for line in session.document().split(b"\n") for event in again.feed(line)]
    events += again.finish()
    assert [reply["usage"]["input"] for reply in of(events, "model.replied")] == [14_000]
    assert of(events, "chat.opened") == []


@pytest.mark.parametrize("form", ["rows", "document"])
def test_a_reader_may_stop_after_any_line_and_go_on(form: str) -> None:
    data = a_session().rows() if form == "rows" else a_session().document()
    _, whole = read(data)
    reader, events = GeminiReader(), []
    for line in data.split(b"\n"):
        events += reader.feed(line)
        saved = json.loads(json.dumps(reader.snapshot()))
        reader = GeminiReader()
        reader.restore(saved)
    assert events + reader.finish() == whole


def test_a_damaged_message_of_a_document_is_told_and_the_others_are_read() -> None:
    lines = a_session().document().split(b"\n")
    at = next(number for number, line in enumerate(lines) if b'"Carrots."' in line)
    lines[at] = b'      "content": "Carro'
    reader, events = read(b"\n".join(lines))
    assert reader.counts["unreadable"] == 1
    assert [reply["usage"]["input"] for reply in of(events, "model.replied")] == [12_500, 13_000]
    (note,) = of(events, "note")
    assert note["code"] == "unreadable_line"


def test_a_document_that_is_cut_gives_what_is_whole() -> None:
    data = a_session().document()
    _, events = read(data[: len(data) - 300])
    assert len(of(events, "model.replied")) == 2


def test_braces_in_texts_are_texts() -> None:
    session = GeminiSession()
    session.turn(12_000, 'if (x) { return "}]}"; } // \\ {')
    session.turn(12_500)
    _, events = read(session.document())
    assert len(of(events, "model.replied")) == 2
    assert of(events, "message.added")[0]["chars"] == 31


def test_a_session_without_a_message_is_no_chat_in_trouble() -> None:
    reader, events = read(GeminiSession().document())
    assert reader.chat == SESSION
    assert [event["type"] for event in events] == ["chat.opened"]


def test_it_is_told_by_its_rows_and_by_its_document() -> None:
    for data in (a_session().rows(), a_session().document(), a_session().document(None)):
        found = sniff(data[:65_536])
        assert found is not None and found.make is GeminiReader
