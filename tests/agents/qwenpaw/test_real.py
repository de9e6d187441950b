"""The published QwenPaw with the plugin: what the page says against what really happened.

Every number is compared with the provider's own book or with QwenPaw's saved session and log.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.agents.provider import empty, out_of_quota, overflow
from tests.agents.qwenpaw.paw import MODEL
from tests.agents.qwenpaw.recording import record
from tests.agents.qwenpaw.scene import LONG, Scene, codes

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1200)]


def test_requests_turns_and_facts_are_those_of_the_provider_and_of_qwenpaw(scene: Scene) -> None:
    before = len(scene.requests())
    scene.paw.window(60_000)
    for number in range(2):
        scene.paw.say("healthy", f"{number}: hello there")
    chat = scene.settled("healthy", 2)
    asked = scene.requests()[before:]
    assert [a.usage["prompt_tokens"] for a in asked if a.usage] == [
        e["usage"]["input"] for e in scene.events("healthy", "model.replied")
    ]
    assert chat["load"]["value"] == asked[-1].prompt and chat["load"]["source"] == "provider"
    assert chat["window"]["value"] == 60_000 and chat["window"]["source"] == "agent"
    assert (chat["reserve"], chat["trigger"]["value"]) == (3_000, 48_000)
    assert chat["requests"] == 2 and chat["model"] == MODEL
    assert [e["outcome"] for e in scene.events("healthy", "turn.ended")] == ["answered"] * 2
    assert chat["title"] == "0: hello there"
    record("healthy", scene.events("healthy"))


def test_structure_and_messages_are_those_of_the_saved_session(scene: Scene) -> None:
    scene.paw.window(60_000)
    for number in range(3):
        scene.paw.say("built", f"{number}: {LONG}")
    scene.settled("built", 3)
    snapshot = scene.events("built", "history.snapshot")[-1]
    saved = scene.paw.context("built")
    assert [topic["id"] for topic in snapshot["topics"]] == [
        message["id"] for message in saved if message["role"] == "user"
    ][:-1]
    ids = [block["id"] for message in saved for block in message["content"]]
    assert [item["id"] for item in snapshot["order"]] == ids
    assert {e["id"] for e in scene.events("built", "message.added")} == set(ids)
    size = sum(len(b["text"].encode()) / 4 for m in saved for b in m["content"])
    assert abs(snapshot["history"] - size) <= len(ids)


def test_automatic_compaction_with_a_summary_is_reduced_and_counts_as_qwenpaw_counts(
    scene: Scene,
) -> None:
    for number in range(3):
        scene.paw.say("auto", f"{number}: {LONG}")
    chat = scene.settled("auto", 3)
    attempt = chat["attempts"][0]
    assert (attempt["outcome"], attempt["trigger"]) == ("reduced", "proactive")
    assert attempt["summarizer"]["calls"] == 1 and attempt["relief"] == "relieved"
    assert attempt["before"] > 16_000 >= attempt["after"]
    log = (scene.paw.folder / "app.log").read_text("utf-8", "replace")
    assert log.count("compact timing outcome=done") == len(
        [e for chat in scene.house.chats() for e in scene.house.events(chat["chat"],
         "compaction.finished") if e["reported"] == "done"]
    )  # fmt: skip
    sent = scene.events("auto", "request.sent")[-1]
    assert attempt["after"] == sent["local"]
    record("automatic", scene.events("auto"))


def test_a_failed_summary_falls_back_and_names_the_cause(scene: Scene) -> None:
    scene.summary = out_of_quota()
    for number in range(3):
        scene.paw.say("quota", f"{number}: {LONG}")
    chat = scene.settled("quota", 3)
    attempt = chat["attempts"][0]
    assert attempt["outcome"] == "fell_back" and attempt["lossy"]
    assert (attempt["summarizer"]["calls"], attempt["summarizer"]["error"]) == (1, "quota")
    failed = scene.events("quota", "model.failed")
    assert len(failed) == len(chat["attempts"])
    assert {(e["purpose"], e["error"], e["status"]) for e in failed} == {("utility", "quota", 402)}
    record("summarizer-quota", scene.events("quota"))


def test_a_prompt_that_cannot_fit_is_refused_before_any_call(scene: Scene) -> None:
    before = len(scene.provider.asked)
    shown = scene.paw.say("unfit", "x" * 36_000)
    assert any(e.get("error", {}).get("code") == "MODEL_CONTEXT_LENGTH_EXCEEDED"
               for e in shown if isinstance(e.get("error"), dict))  # fmt: skip
    assert len(scene.provider.asked) == before
    chat = scene.settled("unfit", 1)
    assert chat["attempts"][0]["outcome"] == "refused"
    (refused,) = scene.events("unfit", "guard.refused")
    assert (refused["limit"], refused["window"], refused["code"]) == (19_000, 20_000,
                                                                      "CONTEXT_UNFIT")  # fmt: skip
    assert refused["count"] == chat["attempts"][0]["before"]
    assert [e["outcome"] for e in scene.events("unfit", "turn.ended")] == ["error"]
    record("context-unfit", scene.events("unfit"))


def test_an_overflow_is_recovered_from_once_and_both_calls_are_told(scene: Scene) -> None:
    for number in range(2):
        scene.paw.say("over", f"{number}: {LONG[:2_000]}")
    scene.script = [overflow()]
    scene.paw.say("over", "and now?")
    chat = scene.settled("over", 3)
    (failed,) = scene.events("over", "model.failed")
    assert (failed["error"], failed["status"]) == ("overflow", 400)
    attempt = chat["attempts"][0]
    assert (attempt["trigger"], attempt["outcome"]) == ("reactive", "reduced")
    assert len(scene.events("over", "request.sent")) - 1 == 4
    assert scene.events("over", "turn.ended")[-1]["outcome"] == "answered"
    record("overflow-recovered", scene.events("over"))


def test_empty_replies_are_counted_and_the_turn_is_silent(scene: Scene) -> None:
    scene.reply = empty()
    for said in ("hello", "hello?"):
        scene.paw.say("empty", said)
    chat = scene.settled("empty", 2)
    assert chat["empty_replies"] == 2 and codes(chat)["silent_empty"] == "critical"
    assert [e["n"] for e in scene.events("empty", "reply.empty")] == [1, 2]
    prompts = [asked.prompt for asked in scene.requests()[-2:]]
    assert [e["prompt"] for e in scene.events("empty", "reply.empty")] == prompts
    assert [e["outcome"] for e in scene.events("empty", "turn.ended")] == ["silent"] * 2
    record("empty-replies", scene.events("empty"))


def test_a_store_that_cannot_be_written_is_a_durability_failure(scene: Scene) -> None:
    for number in range(2):
        scene.paw.say("disk", f"{number}: {LONG}")
    store = scene.paw.work / "workspaces" / "default" / "history.db"
    _refuse(store, True)
    try:
        scene.paw.say("disk", f"2: {LONG}")
    finally:
        _refuse(store, False)
    chat = scene.settled("disk", 3)
    attempt = chat["attempts"][0]
    assert attempt["outcome"] == "durability_failed" and attempt["reported"] == "persist_failed"
    assert "no room" in attempt["reason"]
    record("persist-failed", scene.events("disk"))


def _refuse(store: Path, on: bool) -> None:
    """A real failure of the store: every insert is refused."""
    with sqlite3.connect(store, timeout=20) as db:
        db.execute("DROP TRIGGER IF EXISTS no_room")
        if on:
            db.execute(
                "CREATE TRIGGER no_room BEFORE INSERT ON conversation_history"
                " BEGIN SELECT RAISE(ABORT, 'no room on the disk'); END"
            )
