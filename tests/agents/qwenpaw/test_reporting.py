"""What the plugin reports of turns, calls, compactions and failures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.agents.qwenpaw.host import Block, Reply, says, user

LONG = "w" * 1_200


class Refused(Exception):
    """A provider's refusal, with its HTTP status."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status_code = status


def test_a_turn_its_messages_its_call_and_what_the_provider_billed(make: Any) -> None:
    stage = make()
    stage.world.model.replies = [says("fine", 321)]
    stage.say("s", "hello")
    (sent,) = stage.events("request.sent")
    (replied,) = stage.events("model.replied")
    assert sent["local"] == 101 and replied["request"] == sent["request"]
    assert replied["usage"] == {"dialect": "openai", "input": 321, "output": 5}
    said = stage.events("message.added")
    assert [(m["role"], m["tokens"], m["excerpt"]) for m in said] == [
        ("user", 1, "hello"),
        ("assistant", 1, "fine"),
    ]
    assert {m["topic"] for m in said} == {stage.world.context("s")[0]["id"]}
    assert stage.events("turn.ended")[0]["outcome"] == "answered"


def test_facts_are_what_the_agent_states(make: Any) -> None:
    stage = make()
    stage.world.model.context_size = 20_000
    stage.world.model.parameters.max_tokens = 2_000
    stage.say("s", "hello")
    told = stage.events("chat.updated")[0]
    assert (told["window"], told["reserve"], told["max_output"]) == (20_000, 1_000, 2_000)
    assert told["trigger"] == {"ratio": 0.8, "inclusive": False, "scope": "prompt"}
    assert told["labels"]["strategy"] == "scroll" and told["provider"] == "prov"
    assert stage.events("chat.updated")[-1]["title"] == "Title of chat-s"


def test_a_missing_usage_is_unknown_and_a_cache_of_zero_is_not_told(make: Any) -> None:
    stage = make()
    stage.world.model.replies = [says("fine", None)]
    stage.say("s", "hello")
    assert "usage" not in stage.events("model.replied")[0]


def test_calls_and_results_are_items_with_their_pair(make: Any) -> None:
    stage = make()
    call = Block("tool_call", id="c1", name="ls", input='{"path": "."}')
    stage.world.model.replies = [Reply([call]), says("done")]
    stage.say("s", "list")
    items = {m["id"]: m for m in stage.events("message.added")}
    assert items["call:c1"]["calls"] == ["c1"] and items["result:c1"]["answers"] == ["c1"]
    assert items["result:c1"]["role"] == "tool"
    order = stage.events("history.snapshot")[-1]["order"]
    assert [item["id"] for item in order if item["kind"] != "text"] == ["call:c1", "result:c1"]


def test_a_step_below_the_trigger_is_no_attempt(make: Any) -> None:
    stage = make()
    stage.say("s", "hello")
    assert stage.events("compaction.started") == []


def test_an_automatic_compaction_tells_its_summary_call_and_what_it_removed(make: Any) -> None:
    stage = make()
    stage.say("s", LONG)
    gone = [block["id"] for m in stage.world.context("s") for block in m["content"]]
    stage.say("s", LONG + LONG)
    (begun,) = stage.events("compaction.started")
    (ended,) = stage.events("compaction.finished")
    assert begun["trigger"] == "proactive" and begun["before"] > 800
    assert ended["reported"] == "done" and ended["after"] < ended["before"]
    assert ended["removed"] == gone and "lossy" not in ended
    assert ended["steps"] == [
        {"step": "summary", "calls": 1, "before": ended["before"], "after": ended["after"]}
    ]
    utility = [e for e in stage.events("request.sent") if e.get("purpose") == "utility"]
    assert len(utility) == 1
    assert ended["summarizer"]["calls"] == 1 and ended["summarizer"]["input"] == 40
    bulks = stage.events("history.snapshot")[-1]["bulks"]
    assert [bulk["records"] for bulk in bulks] == [1]
    assert ended["added"][0]["id"] == bulks[0]["id"]


def test_a_failed_and_an_empty_summary_are_told_apart(make: Any) -> None:
    stage = make()
    for session, summary, error in (("a", Refused(402, "no credits"), "quota"), ("b", "", "empty")):
        stage.world.model.summaries = [summary]
        stage.say(session, LONG)
        stage.say(session, LONG + LONG)
        (ended,) = stage.events("compaction.finished", session)
        assert ended["summarizer"]["error"] == error and ended["lossy"] is True
        assert [step["step"] for step in ended["steps"]] == ["summary", "evict"]
    (failed,) = stage.events("model.failed", "a")
    assert (failed["purpose"], failed["error"], failed["status"]) == ("utility", "quota", 402)


def test_a_prompt_that_cannot_fit_is_refused_with_both_numbers(make: Any) -> None:
    stage = make()
    task = stage.begin("s", "w" * 8_000)
    assert "CONTEXT_UNFIT" in str(task.exception(20))
    (refused,) = stage.events("guard.refused")
    assert (refused["limit"], refused["window"], refused["reserve"]) == (950, 1_000, 50)
    (ended,) = stage.events("compaction.finished")
    assert ended["reported"] == "context_unfit" and ended["before"] == refused["count"]
    assert stage.events("turn.ended")[0]["outcome"] == "error"


def test_an_overflow_is_told_and_the_recovery_is_reactive(make: Any) -> None:
    stage = make()
    stage.say("s", "first")
    refusal = Refused(400, "This model's maximum context length is 900 tokens")
    stage.world.model.replies = [Reply(error=refusal), says("recovered")]
    stage.say("s", "second")
    (failed,) = stage.events("model.failed")
    assert (failed["error"], failed["status"]) == ("overflow", 400)
    (ended,) = stage.events("compaction.finished")
    assert ended["trigger"] == "reactive" and len(stage.events("request.sent")) == 4
    assert stage.events("turn.ended")[-1]["outcome"] == "answered"


def test_empty_replies_are_counted_in_a_row(make: Any) -> None:
    stage = make()
    stage.world.model.replies = [says("", 77), says("", 78), says("there"), says("", 79)]
    for _ in range(4):
        stage.say("s", "hello?")
    assert [(e["n"], e["prompt"]) for e in stage.events("reply.empty")] == [
        (1, 77),
        (2, 78),
        (1, 79),
    ]
    assert [e["outcome"] for e in stage.events("turn.ended")] == [
        "silent", "silent", "answered", "silent",
    ]  # fmt: skip


def test_a_store_that_fails_is_an_attempt_only_above_the_trigger_and_else_one_note(
    make: Any,
) -> None:
    stage = make()
    stage.world.broken = True
    stage.say("s", "small")
    assert stage.events("compaction.finished") == []
    (note,) = stage.events("note")
    assert note["level"] == "warning" and "disk full" in note["text"]
    stage.say("s", "w" * 3_400)
    (ended,) = stage.events("compaction.finished")
    assert ended["reported"] == "persist_failed" and "disk full" in ended["reason"]


def test_a_chat_that_was_there_before_is_told_as_a_snapshot_not_as_new_messages(make: Any) -> None:
    stage = make()
    stage.say("s", "hello")
    saved = dict(stage.world.saved)
    other = make()
    other.world.saved = saved
    other.say("s", "again")
    told = [m["excerpt"] for m in other.events("message.added") if m["role"] == "user"]
    assert told == ["hello", "again"]


def test_a_slash_command_is_a_manual_attempt_of_its_chat(make: Any) -> None:
    stage = make()
    stage.say("s", "hello")

    async def compact() -> None:
        from tests.agents.qwenpaw.host import Agent, Manager

        agent = Agent(stage.world, {"session_id": "s"}, stage.world.saved["s"])
        bare = SimpleNamespace(
            model=agent.model, state=agent.state, world=stage.world,
            context_config=agent.context_config, _prepare_model_input=agent._prepare_model_input,
        )  # fmt: skip
        await Manager("s").compress(bare, agent.context_config.model_copy({"trigger_ratio": 1e-6}))

    stage.run(compact())
    (ended,) = stage.events("compaction.finished")
    assert ended["trigger"] == "manual" and ended["reason"] == "nothing_to_compact"


def test_the_native_strategy_is_read_off_the_context(make: Any) -> None:
    stage = make()
    stage.say("s", "hello")
    stage.world.native = True
    stage.say("s", "again")
    assert stage.events("chat.updated")[-1].get("labels", {}).get("strategy") in (None, "native")
    (ended,) = stage.events("compaction.finished")
    assert (ended["scope"], ended["steps"]) == ("history", [{"step": "native"}])
    assert len(ended["removed"]) == 2


def test_nobody_waits_for_what_a_timer_or_another_agent_began(make: Any) -> None:
    stage = make()
    stage.say("s", "hello")
    timer = SimpleNamespace(user_id="u1", channel="console", session_source="cron")

    async def run(**root: str) -> None:
        async for _ in stage.world.turn("t", [user("tick")], timer if not root else None, **root):
            pass

    stage.run(run())
    stage.run(run(root="s"))
    assert [e["kind"] for e in stage.events("turn.started", "t")] == ["task", "task"]
    assert stage.events("turn.started")[0]["kind"] == "user"
    parents = [e.get("parent") for e in stage.events("chat.updated", "t")]
    assert "default/console/u1/s" in parents


def test_the_managers_own_word_for_the_end_is_taken_from_its_log(make: Any) -> None:
    stage = make()
    stage.world.word = "pre_trimmed_below_trigger"
    stage.say("s", LONG)
    stage.say("s", LONG + LONG)
    assert stage.events("compaction.finished")[0]["reported"] == "pre_trimmed_below_trigger"


def test_the_memory_message_is_never_told_as_something_a_user_said(make: Any) -> None:
    stage = make()
    stage.say("s", LONG)
    stage.say("s", LONG + LONG)
    watch = stage.plugin.home.known("default/console/u1/s")
    context = stage.world.context("s")
    assert context[0]["metadata"]["qwenpaw_tag"] == "scroll_memory"
    told = len(stage.events("message.added"))
    watch.learn([])
    watch.sync(context)
    assert len(stage.events("message.added")) == told + len(context) - 1
