"""The operator's commands on the stand-in's own history: at rest, in a turn, under a pass."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.agents.agent_zero.stand_in import LIMIT, StandIn, ids_of, reply
from tests.client.server import eventually


def outputs(history: Any) -> list[str]:
    parts = (*history.bulks, *history.topics)
    return [part.output_text() for part in parts]


def test_a_fallback_at_rest_lands_at_the_target_and_loses_no_message(host: StandIn) -> None:
    context = host.open()
    history = host.preload(context)
    before, ids = history.get_tokens(), ids_of(history)
    first = next(m for t in history.topics for m in t.messages if not m.ai)
    done = host.press("compact_fallback")
    assert done["state"] == "succeeded", done
    assert (done["before"], done["after"]) == (before, history.get_tokens())
    assert history.get_tokens() <= done["detail"]["target"] <= 0.8 * LIMIT
    assert sorted(ids_of(history)) == sorted(ids)
    assert first.output_text() in "\n".join(outputs(history))
    finished = host.told("compaction.finished")[0]
    assert (finished["trigger"], finished["lossy"]) == ("forced", True)
    assert finished["backup"] == done["backup"]


def test_the_backup_is_beside_chat_json_and_holds_the_history_before(host: StandIn) -> None:
    context = host.open()
    history = host.preload(context)
    whole = history.to_dict()
    done = host.press("compact_fallback")
    path = host.folder / done["backup"]
    assert path.parent == host.folder / "usr" / "chats" / "c" / "backups"
    assert json.loads(path.read_text())["history"] == whole
    assert path.stat().st_mode & 0o077 == 0


def test_where_no_backup_can_be_written_nothing_is_changed(host: StandIn) -> None:
    context = host.open()
    history = host.preload(context)
    whole = history.to_dict()
    folder = host.folder / "usr" / "chats" / "c"
    folder.mkdir(parents=True)
    (folder / "backups").write_text("in the way")
    done = host.press("compact_fallback")
    assert done["state"] == "failed"
    assert history.to_dict() == whole
    assert host.told("compaction.finished")[0]["reported"] == "failed"


def test_a_fallback_in_a_turn_waits_for_the_next_step_and_the_turn_goes_on(host: StandIn) -> None:
    context = host.open()
    history = host.preload(context, topics=14)
    gate, said = asyncio.Event(), iter([reply("x", "search"), reply("done")])

    async def slowly(text: str) -> str:
        if not host.events("message.added") or history.current.messages[-1].ai is False:
            await gate.wait()
        return next(said)

    host.models["chat"] = slowly
    task = context.communicate(host.agent.UserMessage("go on"))
    host.told("request.sent")
    command = host.send("compact_fallback", target=1_500)
    eventually(lambda: host.state(command) == "waiting", "the command to wait")
    assert not history.bulks
    context.task.event_loop_thread.loop.call_soon_threadsafe(gate.set)
    assert task.result_sync(20) == "done"
    assert host.server.ended(command)["state"] == "succeeded"
    assert history.bulks and len(ids_of(history)) == len(set(ids_of(history)))


def test_a_background_pass_is_ended_first_so_that_nothing_is_lost_or_doubled(
    host: StandIn,
) -> None:
    context = host.open()
    history = host.preload(context, topics=30)
    ids = ids_of(history)
    from helpers.defer import DeferredTask

    host.models["utility"] = lambda text: asyncio.sleep(30, "late summary")
    task = DeferredTask("Background").start_task(history.compress)
    context.agent0.data["_organize_history_task"] = task
    host.told("compaction.started")
    done = host.press("compact_fallback")
    assert done["state"] == "succeeded", done
    assert sorted(ids_of(history)) == sorted(ids)
    assert context.agent0.data["_organize_history_task"] is None
    ended = {e["attempt"]: e["reported"] for e in host.told("compaction.finished", 2)}
    assert "cancelled" in ended.values()
    assert host.told("model.failed")[0]["error"] == "cancelled"


def test_nothing_to_fall_back_on_is_a_failure_that_says_so(host: StandIn) -> None:
    host.open()
    done = host.press("compact_fallback")
    assert done["state"] == "failed" and "within the target" in done["reason"]


@pytest.mark.parametrize(
    ("name", "value"), [("target", "much"), ("target", -5), ("keep_turns", [1]), ("keep_turns", 0)]
)
def test_an_argument_that_is_no_number_is_named_and_nothing_changes(
    host: StandIn, name: str, value: Any
) -> None:
    history = host.preload(host.open())
    whole = history.to_dict()
    done = host.press("compact_fallback", **{name: value})
    assert done["state"] == "failed" and done["reason"].startswith(f"{name}: must be a whole")
    assert history.to_dict() == whole


def test_what_the_provider_still_holds_is_let_go_with_the_history(host: StandIn) -> None:
    context = host.open()
    host.preload(context)
    context.agent0.data["responses_state"] = {"response_id": "r1", "response_ids": ["r0", "r1"]}
    assert host.press("compact_fallback")["state"] == "succeeded"
    assert context.agent0.data["responses_state"] == {"response_ids": ["r0", "r1"]}


def test_undo_restores_the_history_and_keeps_what_was_said_since(host: StandIn) -> None:
    context = host.open()
    history = host.preload(context)
    whole, ids = outputs(history), ids_of(history)
    done = host.press("compact_fallback")
    host.say(context, "and then?")
    host.settle(context)
    since = [m.id for m in context.agent0.history.current.messages]
    undone = host.press("restore_backup", command=done["command"])
    assert undone["state"] == "succeeded", undone
    now = context.agent0.history
    assert outputs(now)[: len(whole)] == whole
    assert ids_of(now) == ids + since


@pytest.mark.parametrize("damage", ["missing", "cut", "foreign"])
def test_a_backup_that_cannot_be_read_changes_nothing(host: StandIn, damage: str) -> None:
    context = host.open()
    history = host.preload(context)
    done = host.press("compact_fallback")
    path = host.folder / done["backup"]
    if damage == "missing":
        path.unlink()
    else:
        path.write_text(path.read_text()[:200] if damage == "cut" else "{}")
    after = history.to_dict()
    undone = host.press("restore_backup", command=done["command"])
    assert undone["state"] == "failed" and "backup" in undone["reason"]
    assert context.agent0.history.to_dict() == after


def test_clearing_tells_the_old_value_of_each_item(host: StandIn) -> None:
    context = host.open()
    agent = context.agent0

    def raising(text: str) -> str:
        raise ValueError("no credits")

    host.preload(context)
    host.models["utility"] = raising
    with pytest.raises(Exception, match="credits"):
        host.say(context)
    host.settle(context)
    latch = host.told("latch.set")[0]["latch"]
    agent.loop_data.params_persistent["_unusable_response_failures"] = {"count": 2}
    agent.data["_plugin.error_retry.critical_exception_counter"] = 1
    context.paused = True
    done = host.press("clear_latch", latch=latch)
    assert done["state"] == "succeeded", done
    cleared = done["detail"]["cleared"]
    assert cleared["unusable replies"] == 2 and cleared["critical retries"] == 1
    assert cleared["paused"] is True and "no credits" in cleared["failed compression pass"]
    assert agent.data["_organize_history_task"] is None and context.paused is False
    assert host.told("latch.cleared")[0] | {"seq": 0, "ts": 0} == {
        "type": "latch.cleared", "chat": "c", "latch": latch, "how": "operator",
        "command": done["command"], "seq": 0, "ts": 0,
    }  # fmt: skip


def test_where_nothing_was_latched_that_is_said(host: StandIn) -> None:
    host.say(host.open())
    host.told("turn.ended")
    done = host.press("clear_latch", latch="x")
    assert (done["state"], done["reason"]) == ("failed", "nothing was latched in this chat")
    assert done["detail"]["refreshed"]["prompt count"] > 0


def test_continue_gives_the_user_an_answer(host: StandIn) -> None:
    host.open()
    assert host.press("continue")["state"] == "succeeded"
    assert host.told("turn.ended")[0]["outcome"] == "answered"


def test_rescue_ends_the_endless_loop_of_the_older_line_with_an_answer(host: StandIn) -> None:
    host.agent.LINE["gives_up"] = False
    context = host.open()
    history = host.preload(context)
    ids = ids_of(history)
    host.models["utility"] = lambda text: asyncio.sleep(0.01, "")
    context.communicate(host.agent.UserMessage("go on"))
    host.told("compaction.finished", 3)
    done = host.press("rescue")
    assert done["state"] == "succeeded", done
    eventually(lambda: not context.is_running(), "the nudged turn")
    assert [e["outcome"] for e in host.told("turn.ended", 2)] == ["cancelled", "answered"]
    assert history.get_tokens() < LIMIT
    assert set(ids) <= set(ids_of(history))


def test_repair_closes_a_call_whose_result_never_came(host: StandIn) -> None:
    context = host.open()
    history = context.agent0.history
    history.new_topic()
    history.add_message(False, {"user_message": "look"})
    history.add_message(True, reply("x", "search"))
    history.new_topic()
    history.add_message(False, {"user_message": "well?"})
    done = host.press("repair_pairs")
    assert done["state"] == "succeeded" and done["after"] > done["before"]
    assert history.topics[-1].messages[-1].content["tool_name"] == "search"
    again = host.press("repair_pairs")
    assert again["reason"] == "no broken pair was found"
    assert len(history.topics[-1].messages) == 3


def test_a_chat_that_is_not_there_is_refused(host: StandIn) -> None:
    host.say(host.open())
    host.told("turn.ended")
    done = host.press("snapshot", chat="gone")
    assert (done["state"], done["reason"]) == ("refused", "stale")
