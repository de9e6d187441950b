"""What operators press, carried out in an idle chat and in a running turn."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from tests.agents.qwenpaw.conftest import binding, chat
from tests.agents.qwenpaw.host import Block, Model, Reply, says, user
from tests.client.server import eventually

SOME = "w" * 600


def _filled(stage: Any) -> list[dict[str, Any]]:
    """Three turns in a window that holds them; the saved context."""
    stage.world.model.context_size = 5_000
    for number in range(3):
        stage.say("s", f"{number} {SOME}")
    context: list[dict[str, Any]] = stage.world.context("s")
    return context


def test_a_fallback_on_an_idle_chat_evicts_without_a_model_call_and_saves_the_session(
    make: Any,
) -> None:
    stage = make()
    before = _filled(stage)
    asked = len(stage.world.model.asked)
    end = stage.press("compact_fallback")
    assert end["state"] == "succeeded" and end["after"] < end["before"]
    assert len(stage.world.model.asked) == asked and stage.world.model.summarized == 0
    left = stage.world.context("s")
    assert left[0]["metadata"]["qwenpaw_tag"] == "scroll_memory" and left[1:] == before[-2:]
    (ended,) = stage.events("compaction.finished")
    assert ended["trigger"] == "forced" and ended["attempt"] == end["command"]
    assert (ended["before"], ended["after"], ended["lossy"]) == (end["before"], end["after"], True)
    assert ended["steps"][0]["step"] == "evict" and ended["summarizer"]["calls"] == 0
    assert len(stage.events("turn.started")) == 3, "no turn of a user began"


def test_the_state_is_on_the_disk_before_it_is_changed_and_comes_back(make: Any) -> None:
    stage = make()
    before = _filled(stage)
    end = stage.press("compact_fallback")
    saved = Path(end["backup"])
    assert json.loads(saved.read_text())["state"]["state"]["context"] == before
    assert saved.stat().st_mode & 0o077 == 0
    undone = stage.press("restore_backup", command=end["command"])
    assert undone["state"] == "succeeded" and undone["after"] == end["before"]
    assert stage.world.context("s") == before
    again = json.loads(Path(undone["backup"]).read_text())
    assert again["state"]["state"]["context"][0]["metadata"]["qwenpaw_tag"] == "scroll_memory"


def test_a_backup_that_is_not_there_or_not_of_this_chat_is_named(make: Any) -> None:
    stage = make()
    _filled(stage)
    end = stage.press("restore_backup", command="k0")
    assert end["state"] == "failed" and "no backup of command k0" in end["reason"]
    backup = Path(stage.press("compact_fallback")["backup"])
    other = backup.with_name("k0.json")
    other.write_text(json.dumps({**json.loads(backup.read_text()), "chat": "another"}))
    assert "of another version or chat" in stage.press("restore_backup", command="k0")["reason"]


def test_where_only_the_last_turn_is_left_it_says_so_and_changes_nothing(make: Any) -> None:
    stage = make()
    stage.world.model.context_size = 5_000
    stage.say("s", SOME)
    before = stage.world.context("s")
    end = stage.press("compact_fallback")
    assert end["state"] == "failed" and "the last turn" in end["reason"]
    assert stage.world.context("s") == before


def test_a_fallback_in_a_running_turn_waits_for_the_call_and_acts_before_the_next(
    make: Any,
) -> None:
    stage = make()
    _filled(stage)
    gate = threading.Event()
    stage.world.model = _Gated(stage.world.model, gate)
    turn = stage.begin("s", "list")
    eventually(lambda: stage.world.model.waiting, "the call")
    stage.server.command("busy", "compact_fallback", chat=chat())
    eventually(lambda: "waiting" in stage.server.states("busy"), "waiting")
    gate.set()
    end = stage.server.ended("busy")
    turn.result(20)
    assert end["state"] == "succeeded" and end["after"] < end["before"]
    assert len(stage.world.model.asked[-1]) < len(stage.world.model.asked[-2])
    assert stage.world.context("s")[0]["metadata"]["qwenpaw_tag"] == "scroll_memory"
    assert stage.events("turn.ended")[-1]["outcome"] == "answered"


class _Gated(Model):
    """A model whose first answer, a tool call, waits for a gate."""

    def __init__(self, like: Model, gate: threading.Event) -> None:
        super().__init__(like.context_size)
        self.gate, self.waiting = gate, False
        self.replies = [Reply([Block("tool_call", id="c1", name="ls", input="{}")]), says("done")]

    async def __call__(self, messages: list[Any], **given: Any) -> Any:
        self.waiting = True
        await asyncio.to_thread(self.gate.wait, 15)
        return await super().__call__(messages, **given)


def test_a_turn_that_ends_without_another_step_leaves_the_work_to_a_turn_of_its_own(
    make: Any,
) -> None:
    stage = make()
    _filled(stage)
    gate = threading.Event()
    stage.world.model = _Gated(stage.world.model, gate)
    stage.world.model.replies = [says("done")]
    turn = stage.begin("s", "say it")
    eventually(lambda: stage.world.model.waiting, "the call")
    stage.server.command("late", "compact_fallback", chat=chat())
    eventually(lambda: "waiting" in stage.server.states("late"), "waiting")
    gate.set()
    turn.result(20)
    assert stage.server.ended("late")["state"] == "succeeded"
    assert stage.world.context("s")[0]["metadata"]["qwenpaw_tag"] == "scroll_memory"


def test_a_command_that_is_cancelled_while_it_waits_never_acts(make: Any) -> None:
    stage = make()
    before = _filled(stage)
    gate = threading.Event()
    stage.world.model = _Gated(stage.world.model, gate)
    turn = stage.begin("s", "list")
    eventually(lambda: stage.world.model.waiting, "the call")
    stage.server.command("gone", "compact_fallback", chat=chat())
    eventually(lambda: "waiting" in stage.server.states("gone"), "waiting")
    stage.server.send({"type": "cancel", "id": "gone"})
    assert stage.server.ended("gone")["state"] == "cancelled"
    gate.set()
    turn.result(20)
    assert stage.world.context("s")[: len(before)] == before


def test_the_agents_own_compaction_calls_its_summarizer(make: Any) -> None:
    stage = make()
    _filled(stage)
    end = stage.press("compact_summarize")
    assert end["state"] == "succeeded" and stage.world.model.summarized == 1
    (ended,) = stage.events("compaction.finished")
    assert ended["trigger"] == "manual" and "lossy" not in ended


def test_kept_turns_and_a_target_widen_the_tail(make: Any, monkeypatch: Any) -> None:
    from ctxhealth.agents.qwenpaw.plugin import forcing

    stage, seen = make(), []
    _filled(stage)
    original = forcing.forced_config

    def noted(agent: Any, tail: int | None = None) -> Any:
        seen.append(tail)
        return original(agent, tail)

    monkeypatch.setattr(forcing, "forced_config", noted)
    end = stage.press("compact_fallback", keep_turns=2)
    stage.press("restore_backup", command=end["command"])
    stage.press("compact_fallback", target=900)
    # The prompt's count is rounded once: 99 beside two turns of 152 ("0 ", 600 signs, "fine").
    assert seen == [99 + 2 * 152, 900]


def test_continue_answers_the_last_message_without_saying_it_again(make: Any) -> None:
    stage = make()
    stage.world.model.replies = [says(""), says("here it is")]
    stage.say("s", "please answer")
    end = stage.press("continue")
    eventually(lambda: len(stage.events("turn.ended")) == 2, "the turn's end")
    assert end["state"] == "succeeded" and end["detail"] == "the last message"
    said = [m for m in stage.world.context("s") if m["role"] == "user"]
    assert len(said) == 1
    assert [t["kind"] for t in stage.events("turn.started")] == ["user", "continuation"]
    assert stage.events("turn.ended")[-1]["outcome"] == "answered"


def test_continue_says_a_continuation_where_all_is_answered(make: Any) -> None:
    stage = make()
    stage.say("s", "hello")
    assert stage.press("continue")["detail"] == "a continuation"
    eventually(lambda: len(stage.events("turn.ended")) == 2, "the turn's end")
    assert [m["role"] for m in stage.world.context("s")] == ["user", "assistant"] * 2


def test_a_turn_is_stopped_and_none_that_does_not_run(make: Any) -> None:
    stage = make()
    gate = threading.Event()
    stage.world.model = _Gated(stage.world.model, gate)
    turn = stage.begin("s", "list")
    eventually(lambda: stage.world.model.waiting, "the call")
    assert stage.press("stop_turn")["state"] == "succeeded"
    gate.set()
    with pytest.raises(CancelledError):
        turn.result(20)
    assert stage.events("turn.ended")[-1]["outcome"] == "cancelled"
    assert stage.press("stop_turn")["reason"] == "stale"


def test_a_rescue_stops_falls_back_and_continues(make: Any) -> None:
    stage = make()
    _filled(stage)
    gate = threading.Event()
    model = stage.world.model = _Gated(stage.world.model, gate)
    turn = stage.begin("s", "list")
    eventually(lambda: model.waiting, "the call")
    model.replies = [says("rescued")]
    stage.server.command("r", "rescue", chat=chat())
    with pytest.raises(CancelledError):
        turn.result(20)
    gate.set()
    end = stage.server.ended("r")
    assert end["state"] == "succeeded" and end["after"] < end["before"]
    eventually(lambda: stage.events("turn.ended")[-1]["outcome"] == "answered", "an answer")
    assert stage.world.context("s")[-1]["content"][0]["text"] == "rescued"


def test_broken_pairs_are_closed_and_dropped_with_a_backup(make: Any) -> None:
    stage = make()
    stage.say("s", "hello")
    orphan = Block("tool_call", id="open", name="ls", input="{}")
    stray = Block("tool_result", id="stray", name="ls", output="?")
    content = stage.world.context("s")[1]["content"]
    content += [dict(stray.__dict__), dict(orphan.__dict__)]
    end = stage.press("repair_pairs")
    assert end["detail"] == {"closed": ["open"], "dropped": ["stray"]} and end["backup"]
    kinds = [(b["type"], b["id"]) for b in stage.world.context("s")[1]["content"]][1:]
    assert kinds == [("tool_call", "open"), ("tool_result", "open")]
    assert stage.press("repair_pairs")["reason"] == "no broken pair was found"


def test_nothing_latched_is_refused_and_a_failed_summary_is_cleared_with_its_value(
    make: Any,
) -> None:
    stage = make()
    stage.say("s", "hello")
    end = stage.press("clear_latch", latch="x")
    assert (end["state"], end["reason"]) == ("refused", "stale")
    stage.world.saved["s"]["scroll"]["failed"] = True
    end = stage.press("clear_latch", latch="x")
    assert end["state"] == "succeeded" and end["detail"] == {"summary_update_failed": True}
    assert stage.world.saved["s"]["scroll"]["failed"] is False


def test_a_chat_of_another_agent_and_a_foreign_id_are_refused(make: Any) -> None:
    stage = make()
    for name in ("elsewhere/console/u1/s", "no-chat-of-ours"):
        stage.server.command(name, "compact_fallback", chat=name)
        assert stage.server.ended(name)["reason"] == "unsupported"


def test_the_native_strategy_has_no_fallback_and_says_so(make: Any) -> None:
    stage = make()
    stage.world.native = True
    stage.say("s", "hello")
    end = stage.press("compact_fallback")
    assert end["reason"] == "unsupported" and "native strategy" in end["detail"]


def test_what_a_version_lacks_is_not_offered_and_is_told(make: Any) -> None:
    stage = make(binding(manager=None, store=None, missing=["scroll.ScrollContextManager"]))
    hello = stage.server.hellos[-1]
    assert "compact_fallback" not in hello["caps"]["commands"]
    assert "continue" in hello["caps"]["commands"]
    stage.say("s", "hello")
    stage.events("turn.ended")
    notes = [e["text"] for e in stage.server.events("note")]
    assert any("lacks" in text and "compress" in text for text in notes)


def test_commands_can_be_switched_off(make: Any) -> None:
    make(commands=False)
    stage = make(commands=False)
    assert stage.server.hellos[-1]["caps"]["commands"] == ["ping"]


def test_a_users_turn_that_slips_in_is_never_taken_for_an_operators(make: Any) -> None:
    stage = make()
    before = _filled(stage)
    attach = stage.world.task_tracker.attach_or_start
    slipped: list[Any] = []

    async def busy(name: str, *given: Any, **more: Any) -> Any:
        if not slipped:
            slipped.append(None)
            slipped[0] = [item async for item in stage.world.turn("s", [user("me first")])]
            return None, False
        return await attach(name, *given, **more)

    stage.world.task_tracker.attach_or_start = busy
    end = stage.press("compact_fallback")
    assert end["state"] == "succeeded"
    assert slipped[0][-1].content[0].text == "fine", "the user was answered by the model"
    kept = [m["content"][0]["text"] for m in stage.world.context("s")]
    assert kept[1:] == ["me first", "fine"] and len(before) == 6


def test_an_agent_that_cannot_be_built_fails_the_command_in_words(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make()
    stage.say("s", "hello")

    def unable(session: str) -> Any:
        raise RuntimeError("no model is configured")

    monkeypatch.setattr(stage.world, "_build", unable)
    end = stage.press("compact_fallback")
    assert end["state"] == "failed" and "before the agent was ready" in end["reason"]
