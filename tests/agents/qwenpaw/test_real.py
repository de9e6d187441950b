"""The published QwenPaw with the plugin, a model of our own and a real server.

Every number is compared with the provider's own book or with QwenPaw's saved session.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.agents.provider import (
    Asked,
    Provider,
    empty,
    out_of_quota,
    overflow,
    says,
    slow,
)
from tests.agents.qwenpaw.paw import MODEL, Paw, environment
from tests.agents.qwenpaw.recording import record
from tests.agents.server import House

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1200)]

SUMMARY = """## Active Task
Status: completed
counting greek words

## Current State
- earlier turns were answered

## Constraints
(none)

## Decisions
- one word after the other

## Open Work
(none)
"""
LONG = "Please count these: " + "alpha beta gamma " * 260


@dataclass
class Scene:
    """What the fake model does now. ``script`` is used up before ``reply``."""

    house: House
    provider: Provider
    paw: Paw
    reply: Any = None
    summary: Any = None
    script: list[Any] = field(default_factory=list)

    def answer(self, asked: Asked) -> Any:
        """The summarizer and the background memory are the same model."""
        system = str(asked.body["messages"][0].get("content"))
        if "continuation summary" in system:
            return self.summary
        if not is_chat(asked):
            return says("nothing to remember")
        return self.script.pop(0) if self.script else self.reply

    def reset(self) -> None:
        self.reply, self.summary, self.script = says("Certainly. " * 40), says(SUMMARY), []
        self.paw.window(20_000)

    def chat(self, session: str) -> dict[str, Any]:
        return self.house.chat(name(session))

    def events(self, session: str, kind: str | None = None) -> list[dict[str, Any]]:
        return self.house.events(name(session), kind)

    def settled(self, session: str, turns: int) -> dict[str, Any]:
        """The chat once ``turns`` turns have ended on the server too, and its structure after."""

        def over() -> bool:
            events = self.events(session)
            kinds = [event["type"] for event in events]
            ended = kinds.count("turn.ended")
            return ended >= turns and "history.snapshot" in kinds[_last(kinds, "turn.ended") :]

        self.house.until(over, f"{turns} turns of {session} did not end")
        return self.chat(session)

    def press(self, session: str, kind: str, **args: Any) -> dict[str, Any]:
        return self.house.ended(self.house.press(name(session), kind, **args))

    def requests(self) -> list[Asked]:
        """What the model was asked for the chat itself."""
        return [asked for asked in self.provider.asked if is_chat(asked)]


def _last(kinds: list[str], kind: str) -> int:
    return max((at for at, found in enumerate(kinds) if found == kind), default=0)


def name(session: str) -> str:
    return f"default/console/u1/{session}"


def is_chat(asked: Asked) -> bool:
    """A call for the chat carries the agent's tools."""
    return len(asked.body.get("tools") or ()) >= 5


def codes(chat: dict[str, Any]) -> dict[str, str]:
    return {f["code"]: f["severity"] for f in chat["findings"] if not f["closed_at"]}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One QwenPaw, one server, one provider for all of these tests."""
    folder = tmp_path_factory.mktemp("qwenpaw")
    python = environment(folder)
    with Provider() as provider, House(folder / "house") as house:
        paw = Paw(python, folder / "paw", url=house.url, token=house.agent_token, agent="paw")
        paw.prepare(provider.url)
        scene = Scene(house, provider, paw)
        provider.script(MODEL, scene.answer)
        with paw:
            yield scene


@pytest.fixture
def scene(stage: Scene) -> Scene:
    stage.reset()
    return stage


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
    assert codes(chat)["summarizer_failing"] == "warning"
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


def test_a_forced_fallback_on_an_idle_chat_calls_no_model_and_is_undone(scene: Scene) -> None:
    scene.paw.window(60_000)
    for number in range(4):
        scene.paw.say("idle", f"{number}: {LONG}")
    scene.settled("idle", 4)
    asked, held = len(scene.provider.asked), scene.paw.context("idle")
    pressed = scene.press("idle", "compact_fallback")
    assert pressed["state"] == "succeeded" and pressed["after"] < pressed["before"]
    assert len(scene.provider.asked) == asked
    left = scene.paw.context("idle")
    assert len(left) < len(held) and left[-2:] == held[-2:]
    chat = scene.chat("idle")
    attempt = chat["attempts"][0]
    assert (attempt["attempt"], attempt["trigger"]) == (pressed["id"], "forced")
    assert attempt["outcome"] == "fell_back" and attempt["backup"] == pressed["backup"]
    assert (attempt["before"], attempt["after"]) == (pressed["before"], pressed["after"])
    undone = scene.press("idle", "restore_backup", command=pressed["id"])
    assert undone["state"] == "succeeded" and undone["after"] == pressed["before"]
    assert scene.paw.context("idle") == held
    scene.paw.say("idle", "and five")
    assert scene.settled("idle", 5)["load"]["value"] == scene.requests()[-1].prompt
    record("fallback-idle", scene.events("idle"))


def test_a_forced_fallback_waits_for_the_running_call_and_acts_before_the_next(
    scene: Scene,
) -> None:
    scene.paw.window(60_000)
    for number in range(4):
        scene.paw.say("busy", f"{number}: {LONG}")
    gate = threading.Event()
    scene.script = [
        slow(60, says("", calls=(("get_current_time", {}),)), gate),
        says("It is late."),
    ]
    turn = threading.Thread(target=scene.paw.say, args=("busy", "what time is it?"))
    turn.start()
    scene.house.until(lambda: not scene.script[1:], "the call did not leave")
    command = scene.house.press(name("busy"), "compact_fallback")
    scene.house.until(lambda: scene.house.command(command)["state"] == "waiting", "no waiting")
    asked = len(scene.provider.asked)
    gate.set()
    pressed = scene.house.ended(command)
    turn.join(60)
    assert pressed["state"] == "succeeded" and pressed["after"] < pressed["before"]
    assert len(scene.requests()) and len(scene.provider.asked) == asked + 1
    assert scene.requests()[-1].prompt == scene.settled("busy", 5)["load"]["value"]
    kinds = [e["type"] for e in scene.events("busy")][_begun(scene.events("busy")) :]
    assert kinds.index("model.replied") < kinds.index("compaction.started")
    assert kinds[-1] == "history.snapshot" and "turn.ended" in kinds
    record("fallback-mid-turn", scene.events("busy"))


def _begun(events: list[dict[str, Any]]) -> int:
    return _last([event["type"] for event in events], "turn.started")


def test_continue_has_the_unanswered_message_answered_without_saying_it_again(
    scene: Scene,
) -> None:
    scene.reply = empty()
    scene.paw.say("again", "please answer me")
    scene.settled("again", 1)
    scene.reply = says("here is the answer")
    assert scene.press("again", "continue")["state"] == "succeeded"
    chat = scene.settled("again", 2)
    said = [m for m in scene.paw.context("again") if m["role"] == "user"]
    assert len(said) == 1 and "here is the answer" in str(scene.paw.context("again")[-1])
    assert chat["state"] == "healthy" and chat["waiting_since"] is None


def test_a_running_turn_is_stopped_and_no_empty_reply_is_made_of_it(scene: Scene) -> None:
    gate = threading.Event()
    scene.reply = slow(60, says("too late"), gate)
    turn = threading.Thread(target=scene.paw.say, args=("stopped", "begin"))
    turn.start()
    scene.house.until(lambda: scene.events("stopped", "request.sent"), "the call did not leave")
    pressed = scene.press("stopped", "stop_turn")
    gate.set()
    turn.join(60)
    assert pressed["state"] == "succeeded"
    chat = scene.settled("stopped", 1)
    assert scene.events("stopped", "turn.ended")[-1]["outcome"] == "cancelled"
    assert chat["empty_replies"] == 0


def test_a_snapshot_a_repair_and_a_latch_that_is_not_there(scene: Scene) -> None:
    scene.paw.say("plain", "hello")
    chat = scene.settled("plain", 1)
    told = len(scene.events("plain", "history.snapshot"))
    assert scene.press("plain", "snapshot")["state"] == "succeeded"
    assert len(scene.events("plain", "history.snapshot")) > told
    assert scene.press("plain", "repair_pairs")["state"] == "succeeded"
    wish = {
        "kind": "clear_latch",
        "reason": "t",
        "idempotency_key": "plain",
        "args": {"latch": "x"},
    }
    status, answer = scene.house.http("POST", f"/api/v1/chats/{chat['id']}/commands", wish)
    assert status == 422 and answer["error"]["code"] == "no_latch"


def test_with_its_settings_on_it_guards_answers_empty_replies_and_latches(scene: Scene) -> None:
    """Also a hot reinstall: the old copy's patches go, the new one's come."""
    scene.paw.reinstall(guard=True, empty_replies=True, summary_latch=True)
    try:
        scene.paw.until(lambda: _is_live(scene), "the new copy did not come alive")
        _retries_an_empty_reply(scene)
        _warns_of_the_second(scene)
        _refuses_by_the_corrected_count(scene)
        _latches_a_failed_summarizer_until_cleared(scene)
    finally:
        scene.paw.reinstall(guard=False, empty_replies=False, summary_latch=False)
    scene.reset()
    scene.paw.until(lambda: _reports(scene), "the plain copy did not come alive")


def _is_live(scene: Scene) -> bool:
    """The old copy's hooks live on until QwenPaw has reloaded its agents."""
    scene.script = [empty()]
    session = f"live{len(scene.provider.asked)}"
    scene.paw.say(session, "are you there?")
    return not scene.script and len(scene.events(session, "request.sent")) == 2


def _retries_an_empty_reply(scene: Scene) -> None:
    scene.script = [empty(), says("the second try works")]
    scene.paw.say("retry", "please answer me")
    chat = scene.settled("retry", 1)
    assert chat["state"] == "healthy" and len(scene.events("retry", "request.sent")) == 2
    assert "the second try works" in str(scene.paw.context("retry")[-1])
    record("empty-retried", scene.events("retry"))


def _warns_of_the_second(scene: Scene) -> None:
    scene.reply = empty()
    shown = scene.paw.say("warned", "please answer me")
    assert "2 empty replies in a row" in str(shown)
    chat = scene.settled("warned", 1)
    assert [e["count"] for e in scene.events("warned", "agent.stopped")] == [2]
    assert codes(chat)["silent_empty"] == "critical"
    scene.reply = says("Certainly.")


def _refuses_by_the_corrected_count(scene: Scene) -> None:
    """The incident: a count by bytes sees a quarter of what the provider bills for signs."""
    scene.paw.window(60_000)
    for number in range(4):
        scene.paw.say("signs", f"{number}: " + "!?" * 6_000)
    before = len(scene.requests())
    scene.paw.say("signs", "and all of this: " + "!?" * 37_000)
    scene.settled("signs", 5)
    assert len(scene.requests()) == before
    (refused,) = scene.events("signs", "guard.refused")
    sent = scene.events("signs", "request.sent")[-1]
    assert refused["limit"] == 57_000 < refused["count"] and sent["local"] < 48_000
    record("guard-calibrated", scene.events("signs"))


def _latches_a_failed_summarizer_until_cleared(scene: Scene) -> None:
    scene.paw.window(20_000)
    scene.summary = out_of_quota()
    for number in range(3):
        scene.paw.say("latch", f"{number}: {LONG}")
    chat = scene.settled("latch", 3)
    (latch,) = [latch for latch in chat["latches"] if not latch["cleared_at"]]
    assert (latch["kind"], latch["justified"], latch["calls"]) == ("summarizer", True, 1)
    scene.summary = says(SUMMARY)
    pressed = scene.press("latch", "clear_latch", latch=latch["latch"])
    assert pressed["state"] == "succeeded"
    assert set(pressed["detail"]) == {"summary_latch", "summary_update_failed"}
    scene.paw.say("latch", f"3: {LONG}")
    chat = scene.settled("latch", 4)
    assert not [latch for latch in chat["latches"] if not latch["cleared_at"]]
    assert chat["attempts"][0]["outcome"] == "reduced"
    record("latch-cleared", scene.events("latch"))


def test_uninstalled_it_leaves_nothing_behind_and_qwenpaw_goes_on(scene: Scene) -> None:
    scene.paw.http("DELETE", "/api/plugins/ctxhealth")
    try:
        before = len(scene.requests())
        scene.paw.until(lambda: not _reports(scene), "the plugin still reports")
        assert len(scene.requests()) > before
    finally:
        scene.paw.reinstall()
    scene.paw.until(lambda: _reports(scene), "the plugin did not come back")


def _reports(scene: Scene) -> bool:
    """Whether a turn of a new chat is seen, once there was time for it."""
    session = f"seen{len(scene.provider.asked)}"
    scene.paw.say(session, "hello?")
    time.sleep(0.5)
    return name(session) in {chat["chat"] for chat in scene.house.chats()}
