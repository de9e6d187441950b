"""Codex's compactions: which request was the summary, what failed, what only looks like success."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxhealth.readers.base import Event
from tests.readers.rollout import FRAME, Rollout, read
from tests.readers.session import loads, of


def only(rollout: Rollout) -> tuple[Event, list[Event]]:
    """The one finished attempt, and all events."""
    _, events = read(rollout)
    (finished,) = of(events, "compaction.finished")
    return finished, events


def error(message: str, info: Any = "internal_server_error") -> dict[str, Any]:
    return {"message": message, "codex_error_info": info}


def test_the_summarys_own_request_is_no_load_and_what_is_left_is_unknown() -> None:
    rollout = Rollout()
    rollout.turn(33_500)
    rollout.task(context=False)
    rollout.summarise(33_800)
    rollout.estimate(6_100)
    rollout.prompt("Which bed is empty?")
    rollout.say("Bed 3.")
    rollout.used(6_200)
    rollout.end()
    finished, events = only(rollout)
    assert loads(events) == [33_500, 6_200]
    assert finished["summarizer"] == {"calls": 1, "input": 33_800, "output": 300}
    # The client compares the prompt with its reply to the limit.
    assert finished["before"] == 33_540
    assert "after" not in finished and finished["stated_after"] == 6_100
    assert not finished.get("emptied")
    (started,) = of(events, "compaction.started")
    assert (started["trigger"], started["phase"]) == ("proactive", "pre_turn")
    assert [e["kind"] for e in of(events, "message.added")].count("summary") == 1


def test_in_the_middle_of_a_turn_the_turn_goes_on() -> None:
    rollout = Rollout()
    rollout.begin()
    rollout.call("call_1")
    rollout.used(33_500)
    rollout.result("call_1")
    rollout.summarise(33_800)
    rollout.say("Carrots.")
    rollout.used(6_400)
    rollout.end()
    finished, events = only(rollout)
    (started,) = of(events, "compaction.started")
    assert (started["trigger"], started["phase"]) == ("proactive", "mid_turn")
    assert len(of(events, "turn.started")) == len(of(events, "turn.ended")) == 1
    assert loads(events) == [33_500, 6_400]
    assert finished["trigger"] == "proactive"


def test_a_task_without_a_prompt_is_one_that_the_user_asked_for() -> None:
    rollout = Rollout()
    rollout.turn(10_100)
    rollout.task(context=False)
    rollout.summarise(10_500)
    rollout.end(None)
    finished, events = only(rollout)
    (started,) = of(events, "compaction.started")
    assert started["trigger"] == finished["trigger"] == "manual"
    assert started["phase"] == "between_turns"
    # Nobody waits for it as for an answer.
    assert len(of(events, "turn.started")) == 1


def test_an_encrypted_summary_is_a_success_although_it_has_no_words() -> None:
    rollout = Rollout()
    rollout.turn(33_500)
    rollout.task(context=False)
    rollout.used(33_800, 300, response="resp_c")
    history = [{"type": "compaction", "encrypted_content": "x" * 900}]
    rollout.compacted("", history, compaction_response_id="resp_c")
    rollout.turn(6_200)
    finished, events = only(rollout)
    assert "emptied" not in finished
    assert finished["summarizer"]["input"] == 33_800
    assert loads(events) == [33_500, 6_200]


def test_an_old_remote_compaction_leaves_the_reply_before_it_a_load() -> None:
    rollout = Rollout(old=True)
    rollout.begin()
    rollout.call("call_1")
    rollout.used(209_950)
    rollout.result("call_1")
    rollout.estimate(940_499)
    rollout.compacted("", [{"type": "compaction", "encrypted_content": "x"}])
    rollout.say("Carrots.")
    rollout.used(48_297)
    rollout.end()
    finished, events = only(rollout)
    assert loads(events) == [209_950, 48_297]
    assert finished["before"] == 209_990
    assert finished["summarizer"] == {"calls": 1}
    assert "after" not in finished and "stated_after" not in finished


def test_a_summary_of_no_tokens_emptied_the_history_whatever_words_stand_there() -> None:
    rollout = Rollout()
    rollout.turn(33_500, words="The plan has three steps.")
    rollout.task(context=False)
    rollout.summarise(33_800, words="The plan has three steps.", output=0)
    rollout.turn(6_200)
    finished, events = only(rollout)
    assert finished["emptied"] is True
    assert loads(events) == [33_500, 6_200]


@pytest.mark.parametrize(
    ("message", "emptied"),
    [
        (FRAME + "The plan has three steps.", True),
        (FRAME + "  \n ", True),
        (FRAME, True),
        ("", True),
        (FRAME + "Beds 1 to 3 are sown.", None),
        ("Beds 1 to 3 are sown.", None),
    ],
)
def test_without_usage_of_the_summary_its_words_tell_whether_there_is_one(
    message: str, emptied: bool | None
) -> None:
    rollout = Rollout()
    rollout.turn(33_500, words="The plan has three steps.")
    rollout.begin("Which?")
    rollout.compacted(message)
    assert only(rollout)[0].get("emptied") is emptied


def test_what_the_new_history_keeps_is_known_again_and_the_rest_is_gone() -> None:
    for old in (False, True):
        rollout = Rollout(old=old)
        rollout.begin("Keep me.")
        kept = next(r["payload"] for r in rollout.rows if r["payload"].get("role") == "user")
        rollout.call("call_1")
        rollout.used(30_000)
        rollout.result("call_1")
        summary = {"type": "message", "role": "user",
                   "content": [{"type": "input_text", "text": FRAME + "Beds."}]}  # fmt: skip
        rollout.compacted(FRAME + "Beds.", [kept, summary])
        finished, events = only(rollout)
        added = [event for event in of(events, "message.added") if event["kind"] != "summary"]
        prompt = next(event["id"] for event in added if event["role"] == "user")
        assert prompt not in finished["removed"]
        assert set(finished["removed"]) == {event["id"] for event in added} - {prompt}


def test_a_task_that_failed_before_its_first_request_failed_in_making_room() -> None:
    rollout = Rollout()
    rollout.turn(33_500)
    for _ in range(2):
        rollout.begin("Which bed?", context=False)
        rollout.end(None, error("We are at capacity."))
    _, events = read(rollout)
    attempts = of(events, "compaction.finished")
    assert len({event["attempt"] for event in attempts}) == len(attempts) == 2
    for finished in attempts:
        assert finished["inferred"] is True and finished["reason"].startswith("Inferred: ")
        assert finished["before"] == finished["after"] == 33_540
        assert finished["summarizer"]["error"] == "provider"
        assert finished["trigger"] == "proactive"
    # The chat's own model was not asked.
    assert not of(events, "model.failed") and len(of(events, "request.sent")) == 1
    assert [e["outcome"] for e in of(events, "turn.ended")] == ["answered", "error", "error"]


def test_a_task_of_nothing_but_an_error_is_a_failed_manual_attempt() -> None:
    rollout = Rollout()
    rollout.turn(10_100)
    rollout.task(context=False)
    rollout.end(None, error("Quota exceeded.", "usage_limit_exceeded"))
    finished, events = only(rollout)
    assert (finished["trigger"], finished["inferred"]) == ("manual", True)
    assert finished["summarizer"]["error"] == "quota"
    assert len(of(events, "turn.ended")) == 1


def test_a_first_task_that_fails_had_nothing_to_compact() -> None:
    rollout = Rollout()
    rollout.begin(context=False)
    rollout.end(None, error("log in", "unauthorized"))
    _, events = read(rollout)
    assert not of(events, "compaction.finished")
    assert [event["error"] for event in of(events, "model.failed")] == ["auth"]


def test_a_remote_compaction_that_failed_says_so_itself_and_keeps_its_usage() -> None:
    rollout = Rollout()
    rollout.turn(33_500)
    rollout.begin("Which bed?", context=False)
    rollout.used(33_800, 0)
    words = "Error running remote compact task: expected exactly one compaction output item, got 0"
    rollout.end(None, error(words, "other"))
    finished, events = only(rollout)
    assert "inferred" not in finished and finished["reason"] == words
    assert finished["summarizer"] == {
        "calls": 1, "input": 33_800, "output": 0, "error": "malformed", "detail": words,
    }  # fmt: skip
    assert loads(events) == [33_500]


def test_a_remote_failure_in_the_middle_of_a_turn_is_one_too() -> None:
    rollout = Rollout()
    rollout.begin()
    rollout.call("call_1")
    rollout.used(33_500)
    rollout.result("call_1")
    rollout.end(None, error("Error running remote compact task: We are at capacity."))
    finished, events = only(rollout)
    assert finished["summarizer"]["error"] == "provider"
    assert of(events, "compaction.started")[0]["phase"] == "mid_turn"
    assert not of(events, "model.failed")


def test_more_items_than_an_event_holds_are_told_by_what_is_left() -> None:
    rollout = Rollout()
    rollout.begin()
    for number in range(1_100):
        rollout.call(f"call_{number}")
        rollout.used(9_000 + number)
        rollout.result(f"call_{number}")
    rollout.compacted("Beds 1 to 3.")
    reader, events = read(rollout)
    (finished,) = of(events, "compaction.finished")
    (snapshot,) = of(events, "history.snapshot")
    assert "removed" not in finished and snapshot["order"] == []
    assert len(json.dumps(reader.snapshot())) < 100_000
