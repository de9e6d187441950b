"""Compactions: those that a boundary shows, those that an error shows, those only inferred."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.engine.outcome import AttemptFacts, classify_outcome
from tests.readers.session import MODEL, Session, call, loads, of, read, text


def finished(session: Session, **options: Any) -> list[Any]:
    return of(read(session.lines(), **options)[1], "compaction.finished")


def test_before_is_the_last_measured_load_and_after_is_left_to_the_next_reply() -> None:
    session = Session()
    session.turn("m1", 154_992)
    session.boundary(155_250, postTokens=2_889)
    session.turn("m2", 49_761)
    _, events = read(session.lines())
    (started,), (done,) = of(events, "compaction.started"), of(events, "compaction.finished")
    assert (done["before"], done.get("after")) == (154_992, None)
    assert (done["stated_before"], done["stated_after"]) == (155_250, 2_889)
    assert (done["trigger"], done["ms"], started["attempt"]) == ("proactive", 900, done["attempt"])
    assert done["ts"] - started["ts"] == 900
    assert loads(events) == [154_992, 49_761]


def test_what_came_in_since_the_last_reply_explains_a_higher_count_before() -> None:
    session = Session()
    session.prompt()
    session.reply("m1", 150_210, call("t1"), stop="tool_use")
    session.result("t1", "x" * 100_000)
    session.boundary(176_700)
    assert finished(session)[0]["before"] == 176_700


def test_a_count_before_that_nothing_explains_is_not_believed() -> None:
    session = Session()
    session.turn("m1", 30_029)
    session.boundary(190_000)
    (done,) = finished(session)
    assert (done["before"], done["stated_before"]) == (30_029, 190_000)


def test_a_count_before_below_the_last_accepted_load_gives_way_to_the_load() -> None:
    session = Session()
    session.turn("m1", 149_310)
    session.boundary(149_025, trigger="manual")
    (done,) = finished(session)
    assert (done["before"], done["trigger"]) == (149_310, "manual")


def test_a_file_that_starts_with_a_boundary_has_only_the_stated_count() -> None:
    session = Session()
    session.boundary(160_000)
    assert finished(session)[0]["before"] == 160_000


@pytest.mark.parametrize("meta", [{}, {"preTokens": None}, {"trigger": None, "preTokens": "x"}])
def test_every_key_of_the_metadata_may_be_missing(meta: dict[str, Any]) -> None:
    session = Session()
    session.row("system", subtype="compact_boundary", compactMetadata=meta)
    (done,) = finished(session)
    assert "before" not in done and "ms" not in done
    assert done["trigger"] == "proactive"


def test_the_items_that_went_are_named_and_those_kept_are_not() -> None:
    session = Session()
    session.turn("m1", 150_000)
    first = session.prompt("Keep this.")
    kept = session.answer("m2", 151_000)
    session.boundary(151_200, preservedMessages={"allUuids": [first, kept]})
    session.turn("m3", 30_000)
    session.boundary(151_000, trigger="manual")
    _, events = read(session.lines())
    one, two = of(events, "compaction.finished")
    added = [item["id"] for item in of(events, "message.added")]
    assert one["removed"] == added[:2]
    assert two["removed"] == added[2:7]


def test_a_preserved_segment_is_a_range_of_rows() -> None:
    session = Session()
    session.turn("m1", 150_000)
    head = session.prompt("Keep this.")
    session.reply("m2", 151_000, call("t1"), stop="tool_use")
    tail = session.result("t1")
    session.boundary(151_200, preservedSegment={"headUuid": head, "tailUuid": tail})
    (done,) = finished(session)
    assert len(done["removed"]) == 2


def test_more_items_than_an_event_can_name_are_told_by_a_snapshot_of_what_stayed() -> None:
    session = Session()
    session.turn("m1", 150_000)
    for _ in range(3_100):
        session.prompt("note", isMeta=True)
    kept = session.prompt("Keep this.", isMeta=True)
    session.boundary(151_000, preservedMessages={"uuids": [kept]})
    _, events = read(session.lines())
    assert "removed" not in of(events, "compaction.finished")[0]
    assert [item["id"] for item in of(events, "history.snapshot")[0]["order"]] == [kept[:13]]


def test_a_blank_summary_emptied_the_history() -> None:
    session = Session()
    session.turn("m1", 150_000)
    session.boundary(150_100, summary="  ")
    session.turn("m2", 20_000)
    session.boundary(150_100)
    assert [done.get("emptied") for done in finished(session)] == [True, None]


def test_a_microcompaction_is_no_compaction() -> None:
    session = Session()
    session.turn("m1", 150_210)
    session.row("system", subtype="microcompact_boundary",
                microcompactMetadata={"preTokens": 78_208, "tokensSaved": 38_535})  # fmt: skip
    _, events = read(session.lines())
    assert not of(events, "compaction.finished")
    assert [note["code"] for note in of(events, "note")] == ["microcompact"]


def test_a_compaction_after_a_request_without_reply_is_reactive() -> None:
    session = Session()
    session.turn("m1", 160_000)
    session.prompt()
    session.request("r2")
    session.boundary(160_098)
    session.request("r3")
    session.answer("m3", 23_005, requestRef="r3")
    _, events = read(session.lines())
    (failed,) = of(events, "model.failed")
    # No numbers, no word of the provider: that it was too long is not told as a fact.
    assert (failed["request"], failed["error"]) == ("r2", "other")
    assert of(events, "compaction.finished")[0]["trigger"] == "reactive"


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("API Error: 500 Internal server error.", "provider"),
        ("API Error: Request rejected (429) · This request would exceed a limit", "rate_limit"),
        ("Credit balance is too low", "quota"),
        ("no assistant message in summarization response", "empty"),
        ("API Error: Request timed out.", "timeout"),
        ("exhausted", "overflow"),
        ("something new", "other"),
    ],
)
def test_an_automatic_compaction_that_failed_at_the_blocking_limit(reason: str, error: str) -> None:
    session = Session()
    session.turn("m1", 186_000)
    session.prompt()
    session.api_error(f"Prompt is too long · automatic compaction failed: {reason}", "invalid")
    _, events = read(session.lines())
    (done,) = of(events, "compaction.finished")
    assert (done["trigger"], done["before"], done["after"]) == ("proactive", 186_000, 186_000)
    assert (done["reason"], done["summarizer"]["error"]) == (reason, error)
    outcome, _ = classify_outcome(AttemptFacts(before=186_000, after=186_000, calls=1, error=error))
    assert outcome == "summarizer_failed"
    # The provider was not asked: there is no request of it and no word on what fits.
    assert of(events, "model.failed") == []
    (refused,) = of(events, "guard.refused")
    assert (refused["code"], refused.get("count"), refused.get("limit")) == (
        "Prompt is too long", None, None,
    )  # fmt: skip
    assert len(of(events, "request.sent")) == 1
    # Nor does anything say when the attempt began.
    assert of(events, "compaction.started") == []
    assert of(events, "turn.ended")[-1]["outcome"] == "error"


def test_a_compaction_that_failed_after_the_providers_refusal_is_reactive() -> None:
    session = Session()
    session.turn("m1", 160_000)
    session.prompt()
    session.request("r2")
    session.api_error("Prompt is too long · automatic compaction failed: API Error: 500", "x", 400)
    _, events = read(session.lines())
    assert of(events, "compaction.finished")[0]["trigger"] == "reactive"
    (failed,) = of(events, "model.failed")
    assert (failed["request"], failed["error"], failed["status"]) == ("r2", "overflow", 400)


@pytest.mark.parametrize("kind", ["system", "user"])
def test_a_failed_command_is_a_failed_manual_attempt(kind: str) -> None:
    session = Session()
    session.turn("m1", 22_604)
    words = "<local-command-stderr>Error during compaction: Credit balance is too low"
    words += "</local-command-stderr>"
    if kind == "user":
        session.prompt(words)
    else:
        session.row(
            "system",
            subtype="local_command",
            content=words,
            commandRun={"command": "compact"},
            commandOutcome={"kind": "failed"},
        )
    (done,) = finished(session)
    assert (done["trigger"], done["before"], done["after"]) == ("manual", 22_604, 22_604)
    assert (done["reason"], done["summarizer"]["error"]) == ("Credit balance is too low", "quota")


def test_nothing_to_compact_is_told_with_no_call_of_the_summarizer() -> None:
    session = Session()
    session.prompt("<local-command-stderr>Not enough messages to compact.</local-command-stderr>")
    (done,) = finished(session)
    assert (done["reported"], done["summarizer"]) == ("nothing_to_compact", {"calls": 0})


def test_another_commands_output_is_no_compaction() -> None:
    session = Session()
    session.row("system", subtype="local_command", content="<local-command-stderr>no",
                commandRun={"command": "cost"}, commandOutcome={"kind": "failed"})  # fmt: skip
    assert not finished(session)


def test_a_load_that_stays_is_an_inferred_attempt_in_every_turn_that_begins_with_it() -> None:
    session = Session()
    for number, load in enumerate((21_903, 170_000, 170_405, 170_805)):
        session.turn(f"m{number}", load)
    _, events = read(session.lines())
    attempts = of(events, "compaction.finished")
    assert [(done["inferred"], done["before"], done["after"]) for done in attempts] == [
        (True, 170_000, 170_000),
        (True, 170_405, 170_405),
    ]
    assert all(done["reason"].startswith("Inferred:") for done in attempts)
    # Each stands before the request that it did not keep small.
    kinds = [e["type"] for e in events if e["type"] in ("compaction.finished", "request.sent")]
    assert kinds == ["request.sent", "request.sent", "compaction.finished", "request.sent",
                     "compaction.finished", "request.sent"]  # fmt: skip


def test_the_loop_of_one_turn_at_a_high_load_infers_one_attempt_at_most() -> None:
    session = Session()
    session.turn("m1", 171_000)
    session.prompt()
    for number in range(2, 9):
        session.reply(f"m{number}", 171_000 + number, call(f"t{number}"), stop="tool_use")
        session.result(f"t{number}")
    assert len(finished(session)) == 1


@pytest.mark.parametrize(
    "what", ["below", "larger model", "1m", "unknown window", "accepted above", "compacted"]
)
def test_nothing_is_inferred_where_another_explanation_is_at_hand(what: str) -> None:
    session, model = Session(), MODEL
    if what == "larger model":
        model = "claude-sonnet-6"
    elif what == "1m":
        model = f"{MODEL}[1m]"
    elif what == "accepted above":
        session.turn("m0", 195_000)
    load = 166_900 if what == "below" else 172_000
    for number in range(1, 5):
        session.prompt()
        session.answer(f"m{number}", load, model=model)
        if what == "compacted":
            session.boundary(172_100)
    windows = {MODEL: 200_000, "claude-sonnet-6": 1_000_000, f"{MODEL}[1m]": 1_000_000}
    known = (lambda model: None) if what == "unknown window" else windows.get
    found = finished(session, window_of=known)
    assert [done for done in found if done.get("inferred")] == []


def test_an_earlier_automatic_compaction_shows_the_window_where_no_table_does() -> None:
    session = Session()
    session.turn("m1", 168_000)
    session.boundary(168_100)
    session.turn("m2", 171_000)
    session.turn("m3", 171_500)
    found = finished(session, window_of=None)
    assert [done.get("inferred") for done in found] == [None, True]


def test_what_was_billed_beyond_the_replies_is_told_as_unused_summaries() -> None:
    session = Session()
    session.turn("m1", 170_000)
    session.billed(170_000)
    session.turn("m2", 170_405)
    session.billed(170_000 + 170_405 + 300_000)
    _, events = read(session.lines())
    (note,) = [note for note in of(events, "note") if note["code"] == "unused_summaries"]
    assert note["count"] == 2
    assert "300,000" in note["text"]


@pytest.mark.parametrize("what", ["nothing more", "a compaction", "first totals"])
def test_totals_that_are_explained_are_no_unused_summaries(what: str) -> None:
    session = Session()
    session.turn("m1", 170_000)
    if what != "first totals":
        session.billed(170_000)
    session.turn("m2", 170_405)
    if what == "a compaction":
        session.boundary(170_500)
        session.turn("m3", 171_000)
    session.billed(
        {"nothing more": 340_405, "a compaction": 700_000, "first totals": 900_000}[what]
    )
    _, events = read(session.lines())
    assert "unused_summaries" not in [note["code"] for note in of(events, "note")]


def test_two_hundred_compactions_in_a_row_are_two_hundred_attempts() -> None:
    session = Session()
    session.turn("m0", 168_000)
    for number in range(211):
        session.boundary(168_000)
        if number % 3 == 0:
            session.reply(f"m{number + 1}", 168_000, text("Go on."))
    _, events = read(session.lines())
    assert len(of(events, "compaction.finished")) == 211
    assert len(of(events, "turn.started")) <= 72
