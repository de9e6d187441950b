"""What the plugin reports of turns, messages, calls and compression, on the stand-in."""

from __future__ import annotations

import json
from concurrent.futures import CancelledError
from typing import Any

import pytest

from tests.agents.agent_zero.stand_in import LIMIT, StandIn, reply
from tests.client.server import eventually


class Quota(Exception):
    status_code = 402


def raising(text: str) -> str:
    raise Quota("You have no credits left.")


def test_a_chat_opens_with_both_limits_and_its_models(host: StandIn) -> None:
    host.open()
    facts = host.told("chat.opened")[0]
    assert (facts["window"], facts["history_limit"]) == (20_000, LIMIT)
    assert facts["trigger"] == {"tokens": LIMIT, "inclusive": False, "scope": "history"}
    assert facts["utility"]["window"] == 128_000


def test_a_turn_is_told_from_the_users_message_to_the_answer(host: StandIn) -> None:
    context = host.open()
    assert host.say(context) == "yes"
    assert host.told("turn.ended")[0]["outcome"] == "answered"
    kinds = [event["type"] for event in host.server.stream() if event.get("chat") == "c"]
    asked = kinds.index("turn.started")
    assert kinds[asked : asked + 2] == ["turn.started", "message.added"]
    assert kinds.index("request.sent") < kinds.index("model.replied")


def test_prompt_and_history_are_the_agents_own_counts(host: StandIn) -> None:
    context = host.open()
    host.say(context)
    sent = host.told("request.sent")[0]
    assert sent["local"] == context.agent0.data["ctx_window"]["tokens"]
    added = sum(event["tokens"] for event in host.told("message.added", 3))
    assert added == context.agent0.history.get_tokens()
    assert host.told("history.snapshot", 2)[-1]["history"] == added


def test_usage_is_what_the_provider_billed_and_absent_where_nobody_knows(host: StandIn) -> None:
    context = host.open()
    host.say(context)
    usage = host.told("model.replied")[0]["usage"]
    assert usage["input"] == context.agent0.data["ctx_window"]["tokens"] - 7
    host.agent.LINE["usage"] = False
    host.say(context)
    assert "usage" not in host.told("model.replied", 2)[1]


def test_a_tool_call_and_its_result_belong_together(host: StandIn) -> None:
    said = iter([reply("found it", "search"), reply("done")])
    host.models["chat"] = lambda text: next(said)
    host.say(host.open())
    told = host.told("message.added", 5)
    call, result = told[2], told[3]
    assert (call["kind"], call["name"], result["role"]) == ("tool_call", "search", "tool")
    assert result["answers"] == call["calls"]


def test_unusable_replies_are_counted_and_the_stop_is_told(host: StandIn) -> None:
    host.models["chat"] = lambda text: f"no JSON, {len(text)} characters"
    with pytest.raises(Exception, match="unusable"):
        host.say(host.open())
    stopped = host.told("agent.stopped")[0]
    assert stopped["count"] == 3
    marks = [event.get("unusable") for event in host.told("message.added", 8)]
    assert marks.count("malformed") == 3
    assert host.told("turn.ended")[0]["outcome"] == "stopped"


def test_a_repeated_reply_is_told_as_that(host: StandIn) -> None:
    said = iter([reply("a", "search"), reply("a", "search"), reply("done")])
    host.models["chat"] = lambda text: next(said)
    host.say(host.open())
    told = host.told("message.added", 7)
    assert [e["unusable"] for e in told if "unusable" in e] == ["repeated"]


def test_a_blank_reply_is_empty_with_its_usage(host: StandIn) -> None:
    said = iter(["", reply("now")])
    host.models["chat"] = lambda text: next(said)
    host.say(host.open())
    empty = host.told("reply.empty")[0]
    assert empty["n"] == 1 and empty["prompt"] > 0


def test_a_refused_call_is_told_with_its_class_and_status(host: StandIn) -> None:
    host.models["chat"] = raising
    with pytest.raises(Exception, match="credits"):
        host.say(host.open())
    failed = host.told("model.failed")[0]
    assert (failed["error"], failed["status"]) == ("quota", 402)
    assert host.told("turn.ended")[0]["outcome"] == "error"


def test_a_pass_below_the_limit_is_no_attempt(host: StandIn) -> None:
    context = host.open()
    host.say(context)
    host.settle(context)
    host.say(context)
    host.told("turn.ended", 2)
    assert host.events("compaction.started") == []


def last_attempt(host: StandIn, number: int = 1) -> dict[str, Any]:
    return host.told("compaction.finished", number)[number - 1]


def test_a_pass_that_works_is_told_with_its_steps_and_parts(host: StandIn) -> None:
    context = host.open()
    history = host.preload(context)
    before = history.get_tokens()
    host.say(context)
    told = last_attempt(host)
    assert (told["reported"], told["summarizer"]["calls"]) == ("compressed", len(told["steps"]))
    assert told["before"] > before - 200 and told["after"] < LIMIT
    assert told["parts"]["before"]["topics"] > told["parts"]["after"]["topics"]
    assert told["steps"][0]["step"] == "topics_to_bulk"


def test_a_summarizer_that_raises_is_told_with_its_class(host: StandIn) -> None:
    context = host.open()
    host.preload(context)
    host.models["utility"] = raising
    with pytest.raises(Exception, match="credits"):
        host.say(context)
    told = last_attempt(host)
    assert told["summarizer"]["error"] == "quota"
    assert (told["reported"], told["after"]) == ("raised Quota", told["before"])
    # The background pass that failed is kept, and the next prompt build awaits it.
    host.settle(context)
    latch = host.told("latch.set")[0]
    assert (latch["kind"], latch["release"]) == ("summarizer", {"success": True})


def test_a_latch_lapses_with_the_next_pass_that_works(host: StandIn) -> None:
    context = host.open()
    host.preload(context)
    host.models["utility"] = raising
    with pytest.raises(Exception, match="credits"):
        host.say(context)
    host.settle(context)
    host.told("latch.set")
    host.models["utility"] = lambda text: "short"
    context.agent0.data["_organize_history_task"] = None
    host.say(context)
    assert host.told("latch.cleared")[0]["how"] == "success"


def test_a_summarizer_that_answers_nothing_is_told_from_one_that_raises(host: StandIn) -> None:
    context = host.open()
    host.preload(context)
    host.models["utility"] = lambda text: ""
    assert host.say(context) == "yes"
    told = last_attempt(host)
    assert told["summarizer"]["error"] == "empty" and told["reason"].startswith("empty")
    assert told["after"] >= told["before"]
    assert "Nothing was freed" in next(
        e["text"] for e in host.told("note") if e.get("code") == "stalled"
    )


def test_messages_replaced_by_a_blank_summary_are_told_as_emptied(host: StandIn) -> None:
    context = host.open()
    history = context.agent0.history
    host.models["utility"] = lambda text: ""
    words = " ".join(f"w{n}" for n in range(130))
    for _ in range(6):
        history.new_topic()
        for number in range(9):
            history.add_message(bool(number % 2), words)
    host.say(context)
    assert last_attempt(host)["emptied"] is True


def test_a_stall_without_any_call_says_so(host: StandIn) -> None:
    """Messages a little above the size from which they are cut come out no smaller."""
    context = host.open()
    history = context.agent0.history
    words = " ".join(f"w{n}" for n in range(318))
    for _ in range(18):
        history.new_topic()
        history.add_message(False, words)
    host.say(context)
    told = last_attempt(host)
    assert told["summarizer"]["calls"] == 0
    assert told["reason"].startswith("no call, no gain") or told["after"] > told["before"]


def test_the_endless_loop_of_the_older_line_does_not_flood_the_server(host: StandIn) -> None:
    host.agent.LINE["gives_up"] = False
    context = host.open()
    host.preload(context)
    passes = iter(range(300))

    def nothing(text: str) -> str:
        if next(passes, None) is None:
            context.kill_process()
        return ""

    host.models["utility"] = nothing
    task = context.communicate(host.agent.UserMessage("go on"))
    with pytest.raises(CancelledError):
        task.result_sync(20)
    host.told("turn.ended")
    assert len(host.events("compaction.finished")) < 30
    assert any("of one prompt build" in e.get("reason", "") for e in
               host.events("compaction.finished"))  # fmt: skip


def test_a_killed_turn_ends_cancelled_and_its_call_with_it(host: StandIn) -> None:
    import asyncio

    context = host.open()
    host.models["chat"] = lambda text: asyncio.sleep(60)
    context.communicate(host.agent.UserMessage("go on"))
    host.told("request.sent")
    context.kill_process()
    assert host.told("model.failed")[0]["error"] == "cancelled"
    assert host.told("turn.ended")[0]["outcome"] == "cancelled"


def test_what_came_in_while_a_pass_ran_is_not_taken_for_growth(host: StandIn) -> None:
    context = host.open()
    agent = context.agent0
    host.preload(context)

    def late(text: str) -> str:
        if not host.events("compaction.finished"):
            agent.hist_add_message(False, content={"user_message": "late " * 50})
        return ""

    host.models["utility"] = late
    host.say(context)
    told = last_attempt(host)
    assert told["meanwhile"] >= 50
    assert told["after"] - told["meanwhile"] <= told["before"]


def test_background_contexts_are_not_reported(host: StandIn) -> None:
    kind = host.agent.AgentContextType.BACKGROUND
    host.say(host.agent.AgentContext(id="scratch", type=kind))
    host.say(host.open())
    host.told("turn.ended")
    assert host.server.events("chat.opened")[0]["chat"] == "c"
    assert len(host.server.events("chat.opened")) == 1


def test_a_removed_chat_is_closed(host: StandIn) -> None:
    host.open()
    host.agent.AgentContext.remove("c")
    assert host.told("chat.closed")[0]["reason"] == "removed"


def test_no_text_leaves_where_the_owner_says_so(host: StandIn) -> None:
    host.settings["text"] = "none"
    host.say(host.open(), "a very private question")
    host.told("turn.ended")
    assert "private" not in json.dumps(host.server.stream())


def test_a_hook_that_fails_is_swallowed_and_counted(host: StandIn) -> None:
    context = host.open()
    watch = host.module("watch")

    def broken(*given: Any) -> None:
        raise RuntimeError("a defect")

    watch._TAKERS = {**watch._TAKERS, "message_added": broken}
    assert host.say(context) == "yes"
    note = eventually(lambda: host.server.events("note"), "the note")[0]
    assert (note["code"], note["text"][-8:]) == ("hook_failed", "a defect")
    assert host.module("books").station().swallowed["message_added"] >= 2
