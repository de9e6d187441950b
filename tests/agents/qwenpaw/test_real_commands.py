"""The published QwenPaw with the plugin: what operators press, and what its owner switches on."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tests.agents.provider import empty, out_of_quota, says, slow
from tests.agents.qwenpaw.recording import record
from tests.agents.qwenpaw.scene import LONG, SUMMARY, Scene, codes, last, name

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1200)]


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
    return last([event["type"] for event in events], "turn.started")


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
