"""Findings of compaction, latches, replies, turns, pairs and intake, each with a near miss."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.core.findings.catalogue import CATALOGUE

from .story import Story

TRIGGER = {"tokens": 150_000}


def failed(story: Story, error: str = "timeout", before: int = 160_000) -> Story:
    summarizer = {"model": "small", "calls": 1, "input": before, "error": error}
    return story.compacts(before, before, reported="failed", summarizer=summarizer)


class TestStalled:
    def test_two_attempts_without_relief_above_a_declared_trigger(self) -> None:
        story = Story().opened(trigger=TRIGGER).reply(160_000)
        assert "stalled" not in failed(story).codes()
        assert failed(story).severity("stalled") == "critical"

    def test_below_an_assumed_trigger_s_certainty_it_is_a_warning(self) -> None:
        story = Story().opened().reply(165_000)
        for _ in range(2):
            failed(story, before=165_000).reply(165_100)
        assert story.severity("stalled") == "warning"

    def test_one_attempt_over_the_budget_is_enough(self) -> None:
        story = Story().opened().reply(197_000)
        assert failed(story, before=197_000).severity("stalled") == "critical"

    def test_an_attempt_that_works_in_between_starts_the_count_again(self) -> None:
        story = Story().opened(trigger=TRIGGER).reply(160_000)
        failed(story).compacts(160_000, 50_000).reply(50_500)
        failed(story.reply(151_000), before=151_000)
        assert "stalled" not in story.codes()

    def test_a_compaction_that_was_not_needed_never_counts(self) -> None:
        story = Story().opened(trigger=TRIGGER).reply(90_000)
        for _ in range(4):
            story.compacts(90_000, 90_000, summarizer={"calls": 0}).reply(90_100)
        assert story.state.compactions.outcomes == {"not_needed": 4}
        assert story.codes() == set()

    def test_small_gains_that_stay_above_the_trigger_are_stalled_too(self) -> None:
        story = Story().opened(window=1_048_576, trigger={"tokens": 524_000})
        for _ in range(2):
            story.reply(734_649).compacts(734_649, 707_322).reply(707_400)
        found = story.finding("stalled")
        assert "freed 54,654 of 734,649" in found.sentence
        assert "was not enough" in found.sentence

    def test_it_says_that_no_summarizer_call_was_made(self) -> None:
        story = Story().opened(trigger=TRIGGER).reply(160_000)
        for _ in range(2):
            story.compacts(160_000, 160_004, steps=[{"step": "large_message", "calls": 0}])
        assert "(0 summarizer calls)" in story.finding("stalled").sentence


class TestOtherFailures:
    def test_content_replaced_by_a_blank_is_critical_whatever_was_freed(self) -> None:
        story = Story().opened().turn().reply(160_000).compacts(160_000, 20_000, emptied=True)
        assert story.severity("emptied") == "critical"
        assert story.state.compactions.recent[-1].flags == ("emptied",)
        story.reply(20_300).ends()
        assert "emptied" not in story.codes()

    def test_an_ordinary_summary_is_not(self) -> None:
        story = Story().opened().reply(160_000).compacts(160_000, 20_000)
        assert story.codes() == {"load_pending"}

    def test_three_failed_summaries_in_a_row_are_critical(self) -> None:
        story = Story().opened(trigger=TRIGGER).reply(160_000)
        for severity in ("warning", "warning", "critical"):
            assert failed(story, "quota").severity("summarizer_failing") == severity
        assert "has no quota left" in story.finding("summarizer_failing").sentence

    def test_a_summary_that_succeeds_ends_the_row(self) -> None:
        story = failed(Story().opened(trigger=TRIGGER).reply(160_000))
        story.compacts(160_000, 50_000, summarizer={"calls": 1, "output": 500})
        assert "summarizer_failing" not in story.codes()

    def test_a_result_larger_than_what_it_replaced(self) -> None:
        story = Story().opened(window=1_048_576).reply(905_405).compacts(905_405, 1_811_387)
        assert story.severity("grew") == "critical"
        assert "(x2.0)" in story.finding("grew").sentence

    def test_growth_below_the_budget_is_a_warning(self) -> None:
        story = Story().opened().reply(51_300).compacts(51_300, 52_000)
        assert story.severity("grew") == "warning"

    def test_growth_within_the_noise_is_none(self) -> None:
        assert "grew" not in Story().opened().reply(51_300).compacts(51_300, 51_700).codes()

    def test_a_message_that_came_meanwhile_is_no_growth(self) -> None:
        story = Story().opened().reply(51_300)
        story.say("compaction.started", attempt="a", trigger="proactive", before=51_300)
        story.message(2_000)
        story.say("compaction.finished", attempt="a", reported="ok", before=51_300, after=53_300)
        assert "grew" not in story.codes()

    def test_less_than_a_twentieth_freed_is_ineffective(self) -> None:
        story = Story().opened().reply(100_000).compacts(100_000, 96_000)
        assert "4,000 of 100,000" in story.finding("ineffective").sentence
        assert "ineffective" not in Story().opened().compacts(100_000, 95_000).codes()

    def test_a_fallback_is_lossy_and_says_so(self) -> None:
        story = Story().opened().turn().reply(160_000)
        story.compacts(160_000, 90_000, steps=[{"step": "evict", "calls": 0}])
        assert story.severity("lossy") == "info"
        story.reply(90_200).ends()
        assert "lossy" not in story.codes()


STANDS_IN = [{"step": "summary", "calls": 1}, {"step": "evict", "calls": 0}]


def stood_in(story: Story, error: str | None = "quota", after: int = 90_000) -> Story:
    """A compaction whose summary failed, or not, and that freed tokens by rule."""
    summarizer = {"model": "small", "calls": 1, "input": 70_000, "error": error}
    steps = STANDS_IN if error else STANDS_IN[:1]
    story.compacts(160_000, after, summarizer=summarizer, steps=steps, lossy=bool(error))
    return story.reply(after + 100)


class TestSummariesThatSomethingStandsInFor:
    def opened(self) -> Story:
        return Story().opened(trigger=TRIGGER).turn().reply(160_000)

    def test_a_row_of_them_is_a_warning_with_calls_class_and_tokens_and_never_critical(
        self,
    ) -> None:
        story = self.opened()
        for _ in range(5):
            stood_in(story).reply(160_000)
            assert story.severity("summarizer_failing") != "critical"
        assert {a.outcome for a in story.state.compactions.recent} == {"fell_back"}
        found = story.finding("summarizer_failing")
        assert found.severity == "warning"
        assert found.sentence == (
            "The summarizer small failed in 5 compactions in a row (5 calls, 350,000 input tokens "
            "without a result): it has no quota left; something else made room each time."
        )
        assert [advice.action for advice in found.recommended] == ["manual"]
        assert "stalled" not in story.codes() and story.state.incident is None

    def test_two_open_it_and_calm_requests_do_not_close_it(self) -> None:
        story = stood_in(self.opened())
        assert "summarizer_failing" not in story.codes()
        stood_in(story.reply(160_000)).ends()
        for _ in range(6):
            story.turn().reply(90_200).ends()
        assert story.severity("summarizer_failing") == "warning"

    def test_one_failed_summary_and_then_one_that_succeeds_are_nothing(self) -> None:
        story = stood_in(self.opened())
        assert "summarizer_failing" not in story.codes()
        stood_in(story.reply(160_000), error=None)
        stood_in(story.reply(160_000)).ends()
        assert "summarizer_failing" not in story.codes()

    def test_the_first_summary_that_succeeds_closes_it(self) -> None:
        story = stood_in(stood_in(self.opened()).reply(160_000))
        assert story.severity("summarizer_failing") == "warning"
        stood_in(story.reply(160_000), error=None)
        assert "summarizer_failing" not in story.codes()

    def test_a_cut_that_freed_enough_before_the_call_failed_counts_too(self) -> None:
        story = self.opened()
        for _ in range(2):
            summarizer = {"model": "small", "calls": 1, "error": "network"}
            story.compacts(160_000, 90_000, summarizer=summarizer).reply(90_100).reply(160_000)
        assert {a.outcome for a in story.state.compactions.recent} == {"reduced"}
        assert "cannot be reached; something else" in story.finding("summarizer_failing").sentence

    def test_a_fallback_that_never_called_the_summarizer_is_no_failure_of_it(self) -> None:
        story = self.opened()
        for _ in range(4):
            story.compacts(160_000, 90_000, steps=STANDS_IN[1:], summarizer={"calls": 0})
            story.reply(90_100).reply(160_000)
        assert "summarizer_failing" not in story.codes()

    def test_facts_that_an_incident_kept_from_before_are_still_a_sentence(self) -> None:
        kept = (2, 2, None, "quota", "small")
        said = CATALOGUE["summarizer_failing"].sentence(kept)
        assert said.endswith("in 2 compactions in a row (2 calls): it has no quota left.")

    def test_without_relief_three_are_critical(self) -> None:
        story = self.opened()
        for severity in (None, "warning", "critical"):
            assert stood_in(story, after=155_000).severity("summarizer_failing") == severity
        assert "something else" not in story.finding("summarizer_failing").sentence


class TestLooping:
    def loop(self, times: int) -> Story:
        story = Story().opened(trigger=TRIGGER).turn().reply(160_000)
        for _ in range(times):
            story.compacts(160_000, 150_900).reply(151_000)
            story.message(9_000, role="tool")
        return story

    def test_three_within_ten_requests_of_one_turn_without_relief(self) -> None:
        story = self.loop(3)
        assert story.severity("looping") == "critical"
        assert story.is_ == "looping"
        assert story.finding("stalled").suppressed_by == "looping"

    def test_two_are_no_loop(self) -> None:
        assert "looping" not in self.loop(2).codes()

    def test_real_relief_each_time_is_a_warning_that_names_what_refills(self) -> None:
        story = Story().opened(trigger=TRIGGER).turn().reply(160_000)
        for _ in range(3):
            story.compacts(160_000, 40_000).reply(40_500)
            story.message(115_000, name="read_log", role="tool")
        assert story.severity("looping") == "warning"
        story.reply(156_000)
        assert story.severity("looping") == "warning"

    def test_user_turns_between_make_it_ordinary(self) -> None:
        story = Story().opened(trigger=TRIGGER)
        for index in range(5):
            story.turn(f"t{index}").reply(160_000).compacts(160_000, 40_000).reply(40_500)
            story.ends(turn=f"t{index}")
        assert "looping" not in story.codes()

    def test_one_in_each_of_three_turns_without_relief(self) -> None:
        story = Story().opened(trigger={"tokens": 45_000}, window=1_000_000)
        for index in range(3):
            story.turn(f"t{index}").reply(45_061)
            story.compacts(45_061, 45_061, reason="already_compacted", summarizer={"calls": 0})
            story.ends("error", f"t{index}")
        assert story.severity("looping") == "critical"

    def test_many_compactions_are_one_finding_with_a_count(self) -> None:
        story = self.loop(211)
        found = story.finding("looping")
        assert "211 compactions" in found.sentence
        opened = {key for key in story.changes.findings if key[0] == "looping"}
        assert len(opened) == 1

    def test_compactions_that_a_person_asked_for_are_none(self) -> None:
        story = Story().opened(trigger=TRIGGER).turn().reply(160_000)
        for _ in range(4):
            story.compacts(160_000, 150_900, trigger="manual").reply(160_000)
        assert "looping" not in story.codes()

    def test_a_floor_above_the_budget_is_named_as_its_cause(self) -> None:
        story = Story().opened(window=65_536, reserve=32_000, system=9_000, tools=25_000).turn()
        for _ in range(3):
            story.reply(44_000).compacts(44_000, 41_000).reply(43_500)
        assert "cannot touch is larger than the budget" in story.finding("looping").sentence
        assert "floor of 34,000" in story.page.headline


class TestSilent:
    def test_one_empty_reply_is_a_warning_and_two_are_critical(self) -> None:
        story = Story().opened().turn().empty(50_000)
        assert story.severity("silent_empty") == "warning"
        assert story.empty(50_000).severity("silent_empty") == "critical"
        assert story.reply(50_100).codes() == set()

    @pytest.mark.parametrize(
        "content", [{"tool_calls": 1}, {"data": 1}, {"text_chars": 1}, {"thinking_chars": 90}]
    )
    def test_a_call_data_or_thinking_is_not_empty(self, content: dict[str, int]) -> None:
        story = Story().opened().turn().reply(50_000, content=content)
        assert "silent_empty" not in story.codes()

    def test_thinking_that_used_up_the_output_is(self) -> None:
        story = Story().opened().reply(50_000, content={"thinking_chars": 9}, finish="length")
        assert "thinking used up the output limit" in story.finding("silent_empty").sentence

    def test_without_usage_the_cause_is_unknown_and_no_overflow_is_claimed(self) -> None:
        story = Story().opened(window=400_000).reply(365_000).empty(None)
        sentence = story.finding("silent_empty").sentence
        assert "cause unknown" in sentence and "365,000" in sentence
        assert story.row.load.value == 365_000

    def test_a_full_window_is_not_inferred_from_an_older_load(self) -> None:
        story = Story().opened().reply(197_000).empty(None)
        assert story.severity("silent_empty") == "warning"
        assert "cause unknown" in story.finding("silent_empty").sentence

    def test_the_agent_s_own_count_is_not_added_to_ours(self) -> None:
        story = Story().opened().empty(50_000).say("reply.empty", n=1, prompt=50_000)
        assert story.row.empty_replies == 1
        story.say("reply.empty", n=3)
        assert story.row.empty_replies == 3

    def test_content_that_is_not_told_is_not_judged(self) -> None:
        story = Story().opened().reply(50_000, content=None)
        assert story.row.empty_replies == 0

    def test_thinking_alone_shows_nothing_once_the_turn_is_over(self) -> None:
        story = Story().opened().turn().reply(50_000, content={"thinking_chars": 90})
        assert story.codes() == set()
        story.say("turn.ended", turn="t1", outcome="silent")
        assert story.severity("nothing_visible") == "info"

    def test_the_same_reply_three_times(self) -> None:
        story = Story().opened()
        for _ in range(2):
            story.message(50, role="assistant", hash="h")
        assert "repeating" not in story.codes()
        assert story.message(50, role="assistant", hash="h").severity("repeating") == "warning"
        assert "repeating" not in story.message(50, role="assistant", hash="i").codes()


class TestTurns:
    def test_an_agent_that_stops_is_critical_until_a_turn_is_answered(self) -> None:
        story = Story().opened().turn().say("agent.stopped", reason="limit", count=5, limit=5)
        assert story.severity("stopped") == "critical"
        story.ends("stopped").turn("t2").reply(9_000).ends(turn="t2")
        assert story.codes() == set()

    def test_a_turn_that_the_user_cancelled_is_no_stop(self) -> None:
        story = Story().opened().turn().ends("cancelled")
        assert story.codes() == set()
        assert story.row.waiting_since is None

    def test_an_error_after_a_reply_is_not_a_dead_turn(self) -> None:
        story = Story().opened()
        for index in range(3):
            story.turn(f"t{index}").reply(9_000).ends("error", f"t{index}")
        assert "turns_failing" not in story.codes()

    def test_the_user_waits_from_the_first_unanswered_message(self) -> None:
        story = Story().opened().turn("t1")
        since = story.at
        story.ends("error").turn("t2").ends("silent", "t2")
        assert story.row.waiting_since == since
        story.turn("t3", "continuation").reply(9_000).ends(turn="t3")
        assert story.row.waiting_since is None

    def test_a_task_makes_nobody_wait(self) -> None:
        assert Story().opened().turn(kind="task").row.waiting_since is None


class TestPairs:
    def test_a_refusal_that_names_a_call_is_critical_until_a_request_is_accepted(self) -> None:
        story = Story().opened().reply(60_000)
        detail = "messages.2: tool_use ids without tool_result: toolu_01KP2wXY"
        story.fails("invalid", status=400, detail=detail)
        found = story.finding("broken_pairs")
        assert found.severity == "critical" and "toolu_01KP2wXY" in found.sentence
        assert [a.action for a in found.recommended] == ["repair_pairs"]
        assert story.is_ == "broken"
        assert "broken_pairs" not in story.reply(60_100).codes()

    def test_a_refusal_for_another_reason_is_not(self) -> None:
        story = Story().opened().fails("invalid", detail="temperature must be below 2")
        assert "broken_pairs" not in story.codes()

    def call(self, story: Story, call: str, item: str) -> Story:
        return story.message(9, id=item, role="assistant", kind="tool_call", calls=[call])

    def answer(self, story: Story, call: str, item: str) -> Story:
        return story.message(9, id=item, role="tool", kind="tool_result", answers=[call])

    def test_a_compaction_that_takes_the_call_and_leaves_the_result(self) -> None:
        story = self.answer(self.call(Story().opened(), "c1", "i1"), "c1", "i2").reply(90_000)
        story.compacts(90_000, 20_000, removed=["i1"])
        found = story.finding("broken_pairs")
        assert found.severity == "critical" and "a compaction cut them apart" in found.sentence

    def test_one_that_takes_both_is_fine(self) -> None:
        story = self.answer(self.call(Story().opened(), "c1", "i1"), "c1", "i2").reply(90_000)
        story.compacts(90_000, 20_000, removed=["i1", "i2"])
        assert "broken_pairs" not in story.codes()

    def test_a_result_that_is_told_twice_is_one(self) -> None:
        story = self.answer(self.call(Story().opened(), "c1", "i1"), "c1", "i2")
        assert self.answer(story, "c1", "i2").codes() == set()

    def test_a_result_whose_call_never_came_is_critical_in_a_whole_record(self) -> None:
        story = self.answer(self.call(Story().opened(), "c1", "i1"), "c9", "i2")
        assert story.severity("broken_pairs") == "critical"

    def test_a_record_that_starts_in_the_middle_is_a_remark(self) -> None:
        story = self.answer(Story(read_only=True).opened(), "c9", "i2")
        assert story.severity("broken_pairs") == "info"
        assert "starts in the middle" in story.finding("broken_pairs").sentence

    def test_after_a_gap_an_odd_half_proves_nothing(self) -> None:
        story = self.call(Story().opened(), "c1", "i1").say("gap", count=3, reason="full")
        assert self.answer(story, "c9", "i2").severity("broken_pairs") == "info"

    def test_a_young_call_is_normal_and_one_past_its_timeout_is_not(self) -> None:
        story = self.call(Story().opened(), "c1", "i1")
        story.ask()
        assert "broken_pairs" not in story.codes()
        story.wait(11 * 60_000).ask()
        assert story.severity("broken_pairs") == "critical"
        assert "broken_pairs" not in self.answer(story, "c1", "i2").reply(9_000).codes()

    def test_a_snapshot_shows_the_whole_order(self) -> None:
        item = {"role": "tool", "kind": "tool_result", "tokens": 9}
        story = (
            Story()
            .opened()
            .say("history.snapshot", revision="r", order=[{**item, "id": "x", "answers": ["c5"]}])
        )
        assert story.severity("broken_pairs") == "critical"
        call = {"id": "w", "role": "assistant", "kind": "tool_call", "calls": ["c5"]}
        story.say(
            "history.snapshot", revision="s", order=[call, {**item, "id": "x", "answers": ["c5"]}]
        )
        assert "broken_pairs" not in story.codes()


class TestTail:
    def order(self, *ids: str, system: bool = True) -> list[dict[str, Any]]:
        items = [{"id": item, "role": "user", "kind": "text"} for item in ids]
        return [{"id": "s", "role": "system", "kind": "text"}, *items] if system else items

    def asked(self) -> Story:
        story = Story().opened().message(9, id="u1").turn().message(9, id="u2").reply(90_000)
        return story.say("history.snapshot", revision="r", order=self.order("u1", "u2"))

    def test_a_compaction_that_takes_the_waiting_message(self) -> None:
        story = self.asked().compacts(90_000, 20_000, removed=["u1", "u2"])
        assert story.severity("lost_tail") == "critical"
        assert story.is_ == "broken"
        assert "lost_tail" not in story.message(9, id="u3").codes()

    def test_one_that_leaves_it_is_fine(self) -> None:
        story = self.asked().compacts(90_000, 20_000, removed=["u1"])
        assert story.codes() == {"load_pending"}

    def test_a_snapshot_without_it_says_so_too(self) -> None:
        story = self.asked().compacts(90_000, 20_000)
        story.say("history.snapshot", revision="q", order=self.order("sum"))
        assert story.severity("lost_tail") == "critical"

    def test_an_older_message_behind_the_newest(self) -> None:
        story = self.asked().say("history.snapshot", revision="q", order=self.order("u2", "u1"))
        assert story.severity("stale_tail") == "critical"

    def test_a_reminder_of_the_agent_behind_it_is_fine(self) -> None:
        story = self.asked().say("history.snapshot", revision="q", order=self.order("u2", "note"))
        assert story.codes() == set()

    def test_a_system_prompt_that_is_gone(self) -> None:
        story = self.asked()
        story.say("history.snapshot", revision="q", order=self.order("u1", "u2", system=False))
        assert story.severity("lost_system") == "critical"
        story.say("history.snapshot", revision="p", order=self.order("u1", "u2"))
        assert "lost_system" not in story.codes()

    def test_an_agent_that_never_lists_it_is_unknown_there(self) -> None:
        story = Story().opened().message(9, id="u1")
        for revision in ("q", "p"):
            order = self.order("u1", system=False)
            story.say("history.snapshot", revision=revision, order=order)
        assert story.codes() == set()


class TestIntake:
    @pytest.mark.parametrize(
        ("type", "fields", "code"),
        [
            ("gap", {"count": 7, "reason": "outbox full"}, "gap"),
            ("note", {"text": "torn", "code": "unreadable_line", "count": 2}, "unreadable"),
            ("note", {"text": "schema", "code": "rejected"}, "rejected_events"),
        ],
    )
    def test_what_is_missing_is_said_and_alarms_nobody(
        self, type: str, fields: dict[str, Any], code: str
    ) -> None:
        story = Story().opened().say(type, **fields)
        assert story.severity(code) == "info"
        assert story.is_ == "watch"

    def test_an_ordinary_note_is_nothing(self) -> None:
        assert Story().opened().say("note", text="hello").codes() == set()

    def test_a_clock_that_is_off_by_more_than_half_a_minute(self) -> None:
        assert Story().opened().connected(skew_ms=-45_000).severity("clock_skew") == "warning"
        assert Story().opened().connected(skew_ms=30_000).codes() == set()


def _begun_anew(epoch: str) -> Story:
    """After a compaction an agent's process ends, and what comes next has another history."""
    story = Story(live=False).connected(epoch="e1").opened().turn()
    story.say("history.snapshot", revision="1", order=[
        {"id": "s", "role": "system", "kind": "text"}, {"id": "u1", "role": "user", "kind": "text"},
    ])  # fmt: skip
    story.message(9, id="u1").compacts(5_000, 2_000, removed=["old"])
    story.connected(epoch=epoch)
    return story.say(
        "history.snapshot", revision="2", order=[{"id": "v1", "role": "user", "kind": "text"}]
    )


def test_a_process_that_begins_a_new_history_has_lost_neither_system_prompt_nor_message() -> None:
    assert {"lost_system", "lost_tail"}.isdisjoint(_begun_anew("e2").codes())


def test_the_same_process_that_leaves_them_out_has_lost_them() -> None:
    assert {"lost_system", "lost_tail"} <= set(_begun_anew("e1").codes())
