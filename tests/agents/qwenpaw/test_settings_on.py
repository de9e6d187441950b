"""What the owner may switch on: the guard, the empty-reply fallback, the summary latch."""

from __future__ import annotations

from typing import Any

from tests.agents.qwenpaw.host import Msg, says

LONG = "w" * 1_200


def _told(items: list[Any]) -> str:
    last = items[-1]
    assert isinstance(last, Msg)
    return "".join(block.text for block in last.content)


def test_switched_off_nothing_is_changed(make: Any) -> None:
    stage = make()
    stage.world.model.replies = [says("")]
    assert _told(stage.say("s", "hello?")) == ""
    assert len(stage.events("request.sent")) == 1


def test_the_first_empty_reply_is_asked_again_after_a_recovery(make: Any) -> None:
    stage = make(empty_replies=True)
    stage.world.model.context_size = 5_000
    stage.say("s", LONG)
    stage.world.model.replies = [says(""), says("here")]
    assert _told(stage.say("s", "hello?")) == "here"
    (ended,) = stage.events("compaction.finished")
    assert ended["trigger"] == "reactive" and ended["summarizer"]["calls"] == 0
    notice = stage.world.context("s")[-2]
    assert notice["metadata"] == {"qwenpaw_tag": "loop_continuation"}
    assert stage.events("turn.ended")[-1]["outcome"] == "answered"


def test_the_second_in_a_row_is_a_visible_warning_with_both_counts(make: Any) -> None:
    stage = make(empty_replies=True)
    stage.world.model.replies = [says("", 333), says("", 334)]
    shown = stage.say("s", "hello?")
    assert "2 empty replies in a row (prompt tokens 334, completion tokens 5)" in _told(shown)
    assert len(stage.events("request.sent")) == 2
    (stopped,) = stage.events("agent.stopped")
    assert (stopped["count"], stopped["limit"]) == (2, 2)
    assert stage.world.context("s")[-1]["content"][0]["text"] == _told(shown)
    stage.world.model.replies = [says(""), says("back")]
    assert _told(stage.say("s", "and now?")) == "back", "a new episode has its own retry"


def test_a_recovery_that_fails_changes_nothing_about_the_retry(make: Any) -> None:
    stage = make(empty_replies=True)
    stage.world.native = True
    stage.world.model.replies = [says(""), says("here")]
    assert _told(stage.say("s", "hello?")) == "here"
    assert any("No recovery" in e["text"] for e in stage.events("note"))


def test_a_prompt_within_the_budget_passes_the_guard_untouched(make: Any) -> None:
    stage = make(guard=True)
    stage.say("s", "hello")
    assert stage.events("compaction.started") == [] and stage.events("guard.refused") == []


def test_the_guard_counts_the_declared_cap_and_compacts_once_before_it_refuses(make: Any) -> None:
    """Window 1,000 and a cap of 300: 700 are usable, below the trigger of 800."""
    stage = make(guard=True)
    stage.world.model.parameters.max_tokens = 300
    stage.say("s", LONG)
    assert stage.events("compaction.started") == []
    stage.say("s", LONG)
    (ended,) = stage.events("compaction.finished")
    assert (ended["before"], ended["trigger"]) == (701, "forced")
    assert stage.events("turn.ended")[-1]["outcome"] == "answered"
    task = stage.begin("s", "w" * 2_700)
    assert "CONTEXT_UNFIT" in str(task.exception(20))
    refused = stage.events("guard.refused")[-1]
    assert (refused["limit"], refused["reserve"]) == (700, 300)
    assert refused["count"] > 700


def test_the_guard_corrects_its_count_by_what_the_provider_billed(make: Any) -> None:
    """A local count at 0.5 of the provider's: 480 here are 960 there, above 950."""
    stage = make(guard=True)
    for number in range(3):
        stage.world.model.replies = [says("ok", 2 * (101 + number))]
        stage.say(f"warm{number}", "hi")
    watch = stage.plugin.home.known("default/console/u1/warm0")
    assert watch.calibration is None, "one pair proves nothing"
    for _ in range(3):
        local = stage.run(_count(stage)) + 1
        stage.world.model.replies = [says("ok", 2 * local)]
        stage.say("s", "hi")
    task = stage.begin("s", "w" * 1_500)
    assert "CONTEXT_UNFIT" in str(task.exception(20))
    refused = stage.events("guard.refused")[-1]
    assert refused["limit"] == 950 and 950 < refused["count"] < 1_000
    assert stage.world.model.asked[-1][-1].content[0].text == "hi"


async def _count(stage: Any) -> int:
    """The prompt before the next message."""
    said = sum(
        len(b["text"]) for m in stage.world.saved.get("s", {"state": {"context": []}})["state"][
            "context"] for b in m["content"]
    )  # fmt: skip
    return int((400 + said) / 4 + 0.5)


def test_a_failed_summarizer_is_not_asked_again_for_the_same_input_until_cleared(
    make: Any,
) -> None:
    stage = make(summary_latch=True)
    stage.world.model.summaries = [RuntimeError("down")]
    stage.say("s", LONG)
    stage.say("s", LONG + LONG)
    (latch,) = stage.events("latch.set")
    assert (latch["kind"], latch["scope"], latch["bypass"]) == ("summarizer", "process", ["manual"])
    assert latch["release"] == {"input_changed": True, "success": True, "growth": 50}
    tokens = latch["tokens"]
    stage.world.saved["s"]["state"]["context"][-1]["content"][0]["text"] = "fine"
    stage.say("s", "w" * (3_290 - 4 * tokens // 2))
    calls = stage.world.model.summarized
    end = stage.press("clear_latch", latch=latch["latch"])
    assert end["state"] == "succeeded" and end["detail"]["summary_latch"]["calls"] == 1
    (cleared,) = stage.events("latch.cleared")
    assert (cleared["how"], cleared["command"]) == ("operator", end["command"])
    stage.say("s", LONG + LONG)
    assert stage.world.model.summarized > calls


def test_a_summary_that_works_again_clears_the_latch(make: Any) -> None:
    stage = make(summary_latch=True)
    stage.world.model.summaries = [RuntimeError("down")]
    stage.say("s", LONG)
    stage.say("s", LONG + LONG)
    stage.press("compact_summarize")
    stage.say("s", "w" * 3_000)
    assert [e["how"] for e in stage.events("latch.cleared")] in (["success"], ["input_changed"])


def test_a_latch_ends_with_the_process_that_held_it(make: Any) -> None:
    stage = make(summary_latch=True, agent="lasting")
    stage.world.model.summaries = [RuntimeError("down")]
    stage.say("s", LONG)
    stage.say("s", LONG + LONG)
    (latch,) = stage.events("latch.set")
    stage.run(stage.plugin.stop())
    other = make(summary_latch=True, agent="lasting")
    other.say("s", "hello")
    (cleared,) = other.events("latch.cleared")
    assert (cleared["latch"], cleared["how"]) == (latch["latch"], "restart")
