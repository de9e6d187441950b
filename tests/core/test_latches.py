"""Latches of every kind: justified or not, and the right action."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.core.model import LatchView
from ctxhealth.core.state import OPEN_LATCHES

from .story import MINUTE, Story

TRIGGER = {"tokens": 150_000}


def latched(load: int = 120_000, **fields: Any) -> Story:
    story = Story().opened(trigger=TRIGGER).reply(load)
    return story.say("latch.set", **{"latch": "L", "scope": "chat", **fields})


def latch(story: Story) -> LatchView:
    return story.page.latches[0]


def actions(story: Story) -> tuple[list[str], list[str]]:
    view = latch(story)
    return [a.action for a in view.recommended], [a.action for a in view.discouraged]


def after_attempt(calls: int, error: str | None = None, load: int = 160_000) -> Story:
    story = Story().opened(trigger=TRIGGER).reply(load)
    story.compacts(
        load, load, attempt="a", reported="failed", summarizer={"calls": calls, "error": error}
    )
    return story.say("latch.set", latch="L", scope="turn", attempt="a", reason="failed")


def test_one_set_by_an_attempt_without_a_call_is_structural_and_wrong() -> None:
    story = after_attempt(0)
    assert (latch(story).kind, latch(story).justified) == ("structural", False)
    assert actions(story) == (["clear_latch"], [])
    assert "latched_unjustified" in story.codes()


def test_the_agent_s_word_does_not_make_it_a_summarizer_latch() -> None:
    story = Story().opened(trigger=TRIGGER).reply(160_000)
    story.compacts(160_000, 160_000, attempt="a", summarizer={"calls": 0})
    story.say("latch.set", latch="L", scope="turn", kind="summarizer", attempt="a")
    assert latch(story).kind == "structural"


def test_one_set_by_a_failed_call_is_justified_and_clearing_it_is_discouraged() -> None:
    story = after_attempt(1, "quota")
    assert (latch(story).kind, latch(story).justified) == ("summarizer", True)
    assert actions(story) == (["compact_fallback"], ["clear_latch"])
    assert "repeats a call that failed once: quota" in latch(story).discouraged[0].text
    assert "latched" in story.codes()


def test_what_a_cut_freed_before_the_call_failed_does_not_prove_the_summarizer_healed() -> None:
    story = after_attempt(1, "quota")
    story.compacts(
        160_000, 130_000, attempt="b", reported="raised",
        summarizer={"calls": 1, "error": "quota"},
    )  # fmt: skip
    assert (latch(story).kind, latch(story).justified) == ("summarizer", True)


def test_after_the_summarizer_worked_again_it_is_right_to_clear_it() -> None:
    story = after_attempt(1, "quota")
    story.compacts(160_000, 60_000, trigger="manual", summarizer={"calls": 1, "output": 900})
    assert latch(story).justified is False
    assert actions(story) == (["clear_latch"], [])


def test_already_compacted_is_no_failure() -> None:
    story = latched(kind="already_compacted")
    assert latch(story).justified is False
    assert actions(story)[0] == ["clear_latch"]


class TestCooldown:
    def test_with_room_left_the_right_thing_is_to_wait(self) -> None:
        story = latched(kind="cooldown", release={"until": 20 * MINUTE})
        assert latch(story).justified is True
        assert actions(story) == (["manual"], ["clear_latch"])
        assert latch(story).lapses == "at 00:20 UTC"

    def test_near_the_budget_it_is_the_fallback(self) -> None:
        story = latched(load=185_000, kind="cooldown", release={"until": 20 * MINUTE})
        assert actions(story) == (["compact_fallback"], ["clear_latch"])

    def test_its_end_is_a_deadline_and_clears_it(self) -> None:
        story = latched(kind="cooldown", release={"until": 20 * MINUTE}).tick_when_due()
        assert story.page.latches == ()
        assert story.changes.latches["L", 5].cleared_how == "time"


class TestLockHeld:
    @pytest.mark.parametrize(
        ("alive", "justified", "action"),
        [
            (True, True, "compact_fallback"),
            (None, True, "compact_fallback"),
            (False, False, "clear_latch"),
        ],
    )
    def test_it_depends_on_the_holder(
        self, alive: bool | None, justified: bool, action: str
    ) -> None:
        holder = {"id": "pid 24468", "host": "box"}
        if alive is not None:
            holder["alive"] = alive  # type: ignore[assignment]
        story = latched(kind="lock_held", holder=holder)
        assert latch(story).justified is justified
        assert actions(story)[0] == [action]
        assert "pid 24468" in latch(story).why


def test_used_up_attempts_are_fine_to_clear_while_the_load_is_fine() -> None:
    assert actions(latched(load=90_000, kind="exhausted"))[0] == ["clear_latch"]
    assert actions(latched(load=170_000, kind="exhausted"))[0] == ["compact_fallback"]


def test_no_gain_asks_for_the_fallback() -> None:
    assert actions(latched(kind="no_gain")) == (["compact_fallback"], ["clear_latch"])


def test_an_open_call_asks_for_a_repair() -> None:
    assert actions(latched(kind="open_call"))[0] == ["repair_pairs"]


def test_without_a_kind_and_without_evidence_it_is_not_judged() -> None:
    view = latch(latched())
    assert (view.kind, view.justified) == ("unknown", None)


class TestInferred:
    def story(self, requests: int, failures: bool = True) -> Story:
        story = Story().opened(trigger=TRIGGER).reply(160_000)
        if failures:
            for _ in range(2):
                story.compacts(160_000, 160_000, summarizer={"calls": 1, "error": "timeout"})
        for index in range(requests):
            story.reply(161_000 + index)
        return story

    def test_after_failures_and_three_requests_without_an_attempt(self) -> None:
        story = self.story(3)
        assert (latch(story).kind, latch(story).justified) == ("inferred", True)
        assert latch(story).inferred
        assert actions(story) == (["compact_fallback"], ["clear_latch"])

    def test_two_requests_are_not_enough(self) -> None:
        assert self.story(2).page.latches == ()

    def test_without_failures_on_record_no_latch_is_claimed(self) -> None:
        story = self.story(6, failures=False)
        assert story.page.latches == ()
        assert "the reason is not known" in story.finding("overdue").sentence

    def test_the_next_attempt_ends_it(self) -> None:
        story = self.story(3).say("compaction.started", attempt="n", trigger="proactive")
        assert story.page.latches == ()


class TestEnds:
    def test_an_agent_s_word_and_who_pressed(self) -> None:
        story = latched().command("clear_latch")
        story.say("latch.cleared", latch="L", how="operator", command="cmd1")
        view = story.changes.latches["L", 5]
        assert (view.cleared_how, view.cleared_by) == ("operator", "op")
        assert story.row.latches == ()

    @pytest.mark.parametrize("scope", ["step", "send", "turn"])
    def test_a_silent_agent_s_latch_ends_with_its_turn(self, scope: str) -> None:
        story = latched(scope=scope)
        assert story.row.latches
        assert story.turn("t2").row.latches == ()

    @pytest.mark.parametrize("scope", ["chat", "process"])
    def test_a_wider_one_outlives_it(self, scope: str) -> None:
        assert latched(scope=scope).turn("t2").row.latches

    def test_a_new_process_ends_all_but_the_chat_s_own(self) -> None:
        for scope, left in (("process", 0), ("turn", 0), ("chat", 1)):
            story = Story(live=False).connected(epoch="e1").opened()
            story.say("latch.set", latch="L", scope=scope).connected(epoch="e2")
            assert len(story.row.latches) == left

    def test_clearing_what_was_not_set_is_noted_and_changes_nothing(self) -> None:
        story = Story().opened().say("latch.cleared", latch="X", how="time")
        assert "was not set" in story.changes.oddities[-1]


class TestSeverity:
    def test_with_room_it_is_a_warning_and_the_chat_is_watched(self) -> None:
        story = latched(kind="no_gain")
        assert story.severity("latched") == "warning"
        assert story.is_ == "watch"

    def test_at_the_budget_it_blocks(self) -> None:
        story = latched(load=195_904, kind="no_gain")
        assert story.severity("latched") == "critical"
        assert story.is_ == "blocked"

    def test_when_every_turn_fails_it_blocks_and_explains_them(self) -> None:
        story = latched(kind="already_compacted")
        for index in range(2):
            story.turn(f"t{index}").ends("error", f"t{index}")
        assert story.severity("latched_unjustified") == "critical"
        assert story.finding("turns_failing").suppressed_by == "latched_unjustified"
        assert story.is_ == "blocked"

    def test_a_latch_that_lets_a_rescue_through_does_not_block_it(self) -> None:
        story = latched(kind="no_gain", bypass=["overflow"]).fails("overflow")
        assert story.severity("latched") == "warning"
        assert story.is_ == "over"

    def test_one_that_stopped_a_rescue_does(self) -> None:
        story = latched(kind="no_gain", bypass=["manual"]).fails("overflow")
        assert story.severity("latched") == "critical"


class TestOneOpenRowForEachOpenLatch:
    def open_rows(self, story: Story) -> list[str]:
        return [view.latch for view in story.changes.latches.values() if view.cleared_at is None]

    def test_a_latch_that_is_set_again_is_open_once_and_cleared_whole(self) -> None:
        story = Story().opened()
        for _ in range(3):
            story.say("latch.set", latch="l", scope="chat", kind="cooldown")
        assert self.open_rows(story) == ["l"]
        assert len(story.page.latches) == 1
        story.say("latch.cleared", latch="l", how="success")
        assert self.open_rows(story) == []

    def test_one_that_is_no_longer_followed_is_not_shown_as_open(self) -> None:
        story = Story().opened()
        for number in range(OPEN_LATCHES + 3):
            story.say("latch.set", latch=f"l{number}", scope="chat")
        held = [view.latch for view in story.page.latches]
        assert len(held) == OPEN_LATCHES
        assert sorted(self.open_rows(story)) == sorted(held)
        assert story.changes.latches["l0", 3].cleared_how == "forgotten"
