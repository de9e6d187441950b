"""Findings of load, limits and meter: each where it fires, and a near miss where it must not."""

from __future__ import annotations

import pytest

from .story import Story


class TestOverWindow:
    def test_an_overflow_without_numbers_is_critical_until_a_request_is_accepted(self) -> None:
        story = Story().opened().reply(150_000).fails("overflow")
        assert story.severity("over_window") == "critical"
        assert "refused" in story.finding("over_window").sentence
        story.reply(60_000)
        assert "over_window" not in story.codes()

    def test_an_error_that_states_both_numbers_is_a_reading(self) -> None:
        story = Story().opened(window=1_048_576)
        story.fails("overflow", stated_prompt=1_048_599, stated_window=1_048_576)
        assert "1,048,599 of 1,048,576" in story.finding("over_window").sentence
        assert story.row.headroom.window == -23

    def test_a_refusal_for_another_reason_is_not_one(self) -> None:
        story = Story().opened().reply(100_000).fails("invalid", detail="bad temperature")
        assert story.codes() == set()

    def test_the_agent_s_own_count_above_the_window_is_one(self) -> None:
        story = Story().opened(window=272_000).say("usage.update", used=508_100)
        assert story.severity("over_window") == "critical"
        assert "236,100 above" in story.finding("over_window").sentence


class TestOverBudget:
    def test_a_declared_reserve_is_critical(self) -> None:
        story = Story().opened(window=196_608, reserve=9_830).reply(196_602)
        assert story.severity("over_budget") == "critical"
        assert "9,824 above the budget of 186,778" in story.finding("over_budget").sentence

    def test_an_assumed_reserve_and_an_answer_is_a_warning(self) -> None:
        assert Story().opened().reply(197_000).severity("over_budget") == "warning"

    def test_an_assumed_reserve_and_no_answer_is_critical(self) -> None:
        assert Story().opened().empty(197_000).severity("over_budget") == "critical"

    def test_a_prompt_of_exactly_the_budget_fits(self) -> None:
        assert "over_budget" not in Story().opened(reserve=9_830).reply(190_170).codes()

    def test_input_and_output_cap_together_count(self) -> None:
        story = Story().opened(window=131_072, reserve=32_000).reply(99_509)
        assert "437 above the budget of 99,072" in story.finding("over_budget").sentence


class TestProviderTruncates:
    def plateau(self, requests: int, grows: bool) -> Story:
        story = Story().opened(window=400_000).reply(180_000)
        for _ in range(requests):
            if grows:
                story.message(2_000)
            story.reply(196_608)
        return story

    def test_three_equal_counts_while_the_history_grows(self) -> None:
        story = self.plateau(3, grows=True)
        assert story.severity("provider_truncates") == "critical"
        assert "exactly 196,608" in story.finding("provider_truncates").sentence

    def test_two_are_not_enough(self) -> None:
        assert "provider_truncates" not in self.plateau(2, grows=True).codes()

    def test_a_retried_request_without_new_items_is_not_a_plateau(self) -> None:
        assert "provider_truncates" not in self.plateau(6, grows=False).codes()

    def test_a_count_far_below_the_bytes_sent_where_they_agreed_before(self) -> None:
        story = Story().opened(window=16_384).reply(4_000, sent={"bytes": 16_400})
        story.message(3_900).reply(2_050, sent={"bytes": 31_600})
        assert story.severity("provider_truncates") == "critical"

    def test_text_that_always_has_many_bytes_a_token_proves_nothing(self) -> None:
        story = Story().opened().reply(4_000, sent={"bytes": 40_000})
        story.message(1_000).reply(5_000, sent={"bytes": 50_000})
        assert "provider_truncates" not in story.codes()


class TestBytesLimit:
    def test_more_bytes_than_the_agent_s_limit_is_a_warning(self) -> None:
        story = Story().opened(bytes_limit=600_000).reply(72_706, sent={"bytes": 888_000})
        assert story.severity("bytes_limit") == "warning"

    def test_a_refusal_is_critical_and_the_fallback_is_discouraged(self) -> None:
        story = Story().opened(bytes_limit=600_000).fails("too_large", status=413)
        assert story.severity("bytes_limit") == "critical"
        assert [a.action for a in story.finding("bytes_limit").discouraged] == ["compact_fallback"]

    def test_just_below_is_fine(self) -> None:
        story = Story().opened(bytes_limit=600_000).reply(72_706, sent={"bytes": 600_000})
        assert story.codes() == set()


class TestCannotFit:
    def test_a_floor_above_the_budget_cannot_be_compacted_away(self) -> None:
        story = Story().opened(window=65_536, reserve=32_000, system=9_000, tools=24_000)
        story.say("history.snapshot", revision="r", protected=10_000)
        found = story.finding("floor_exceeds_budget")
        assert found.severity == "critical"
        assert "floor of 43,000" in found.sentence and "budget of 33,536" in found.sentence
        assert [a.action for a in found.recommended] == ["manual"]
        assert [a.action for a in found.discouraged] == ["compact_fallback"]
        story.reply(44_000)
        assert story.finding("over_budget").suppressed_by == "floor_exceeds_budget"
        assert story.is_ == "cannot_fit"

    def test_a_floor_that_just_fits_is_fine(self) -> None:
        story = Story().opened(window=65_536, reserve=32_000, system=9_536, tools=24_000)
        assert "floor_exceeds_budget" not in story.codes()

    def test_a_reserve_below_nine_tenths_of_the_window_is_a_choice(self) -> None:
        story = Story().opened(window=32_768, reserve=29_000)
        assert "reserve_exceeds_window" not in story.codes()

    def test_a_reserve_as_large_as_the_window_is_not(self) -> None:
        story = Story().opened(window=32_768, reserve=32_768)
        assert "0 tokens are left" in story.finding("reserve_exceeds_window").sentence


class TestSummarizerRoom:
    def summary(self, tokens: int, cap: int | None = None) -> Story:
        story = Story().opened(utility={"model": "small", "window": 58_550})
        return story.say(
            "request.sent", request="u", purpose="utility", local=tokens, max_output=cap
        )

    def test_a_summarizer_smaller_than_its_input(self) -> None:
        assert self.summary(78_000).severity("summarizer_too_small") == "warning"

    def test_one_that_holds_it_is_fine(self) -> None:
        assert self.summary(58_550).codes() == set()

    def test_an_output_cap_that_leaves_it_no_room(self) -> None:
        story = self.summary(50_000, cap=20_000)
        assert "50,000 + 20,000 output = 70,000" in story.finding("summary_reserve").sentence

    def test_a_small_cap_is_fine(self) -> None:
        assert self.summary(50_000, cap=8_000).codes() == set()


class TestSaturated:
    def above(self, requests: int, **facts: object) -> Story:
        story = Story().opened(**facts)
        for index in range(requests):
            story.reply(165_000 + index * 100)
        return story

    def test_one_request_above_a_declared_trigger_is_only_near(self) -> None:
        assert self.above(1, trigger={"tokens": 160_000}).codes() == {"near_trigger"}

    def test_one_further_request_without_an_attempt_is_a_warning(self) -> None:
        story = self.above(2, trigger={"tokens": 160_000})
        assert story.severity("over_trigger") == "warning"
        assert story.is_ == "saturated"

    def test_three_are_overdue_and_one_finding_says_it(self) -> None:
        story = self.above(3, trigger={"tokens": 160_000})
        assert story.severity("overdue") == "warning"
        assert story.finding("over_trigger").suppressed_by == "overdue"

    def test_an_assumed_trigger_never_gives_more_than_info(self) -> None:
        story = self.above(8)
        assert story.codes() == {"near_trigger"}
        assert story.severity("near_trigger") == "info"
        assert story.is_ == "watch"

    def test_without_a_trigger_of_its_own_it_is_overdue_near_the_budget(self) -> None:
        story = Story().opened()
        for index in range(4):
            story.reply(188_000 + index)
        assert story.severity("overdue") == "warning"

    @pytest.mark.parametrize("load", [910_000, 965_000])
    def test_a_window_of_a_million_is_not_overdue_at_90_percent(self, load: int) -> None:
        story = Story().opened(window=1_000_000)
        for index in range(6):
            story.reply(load + index)
        assert "overdue" not in story.codes()

    def between_turns(self, requests: int, load: int = 165_000) -> Story:
        story = Story().opened(trigger={"tokens": 160_000}).turn("t1").reply(140_000)
        for index in range(requests):
            story.reply(load + index)
        return story

    def test_an_agent_that_compacts_between_turns_has_until_the_next_one(self) -> None:
        story = self.between_turns(5)
        assert story.codes() == {"near_trigger"}
        story.ends(turn="t1").turn("t2").compacts(165_005, 40_000).reply(40_500)
        assert story.codes() == set()

    def test_a_turn_that_began_without_an_attempt_is_late(self) -> None:
        story = self.between_turns(2).ends(turn="t1").turn("t2").reply(165_500)
        assert story.severity("overdue") == "warning"

    def test_within_one_long_turn_it_is_overdue_near_the_budget(self) -> None:
        assert self.between_turns(2, load=188_000).codes() == {"near_trigger"}
        assert self.between_turns(3, load=188_000).severity("overdue") == "warning"

    def test_an_agent_seen_to_compact_within_turns_is_late_within_one(self) -> None:
        story = Story().opened(trigger={"tokens": 160_000}).turn().reply(161_000)
        story.say("compaction.started", attempt="a", trigger="proactive", phase="mid_turn")
        story.say("compaction.finished", attempt="a", reported="ok", before=161_000, after=50_000)
        story.reply(50_500).reply(161_000).reply(161_500)
        assert story.severity("over_trigger") == "warning"

    def test_a_compaction_that_runs_is_an_attempt(self) -> None:
        story = self.above(2, trigger={"tokens": 160_000})
        story.say("compaction.started", attempt="a", trigger="proactive")
        assert "over_trigger" not in story.codes()

    def test_a_trigger_above_the_limit_that_the_provider_stated(self) -> None:
        story = Story().opened(window=1_000_000, trigger={"tokens": 968_000})
        story.fails("overflow", stated_window=940_000)
        assert story.severity("trigger_unreachable") == "warning"

    def test_a_trigger_below_it_is_fine(self) -> None:
        story = Story().opened(window=1_000_000, trigger={"tokens": 930_000})
        story.fails("overflow", stated_window=940_000)
        assert "trigger_unreachable" not in story.codes()


class TestMeter:
    def test_a_count_of_exactly_the_window_looks_clamped(self) -> None:
        story = Story().opened(window=258_400).say("usage.update", used=258_400)
        assert story.severity("meter_unreliable") == "warning"
        assert story.codes() == {"meter_unreliable"}

    def test_a_count_one_below_it_does_not(self) -> None:
        story = Story().opened(window=258_400).say("usage.update", used=258_399)
        assert "meter_unreliable" not in story.codes()

    def test_a_step_of_more_than_the_window_without_an_item(self) -> None:
        story = Story().opened().say("usage.update", used=47_872)
        story.say("usage.update", used=7_667_872)
        assert story.codes() == {"meter_unreliable"}

    def test_before_and_after_in_different_scopes(self) -> None:
        story = Story().opened().compacts(404, 17_133, scope="history", after_scope="prompt")
        assert story.state.compactions.recent[-1].outcome == "not_comparable"
        assert story.severity("meter_unreliable") == "warning"
        assert "grew" not in story.codes()
        story.reply(17_200)
        assert "meter_unreliable" not in story.codes()

    def test_three_pairs_below_four_fifths_are_an_undercount(self) -> None:
        story = Story().opened(trigger={"tokens": 150_000})
        for _ in range(2):
            story.reply(140_000, local=100_000)
        assert "undercount" not in story.codes()
        story.reply(140_000, local=100_000)
        assert story.severity("undercount") == "warning"

    def test_far_below_every_limit_it_is_only_a_remark(self) -> None:
        story = Story().opened()
        for _ in range(3):
            story.reply(50_000, local=30_000)
        assert story.severity("undercount") == "info"

    def test_one_pair_with_the_budget_between_is_enough(self) -> None:
        assert Story().opened().reply(196_500, local=120_000).severity("undercount") == "warning"

    def test_a_pair_that_nearly_agrees_is_none_even_around_the_budget(self) -> None:
        assert "undercount" not in Story().opened().reply(196_500, local=190_000).codes()

    def test_a_ratio_of_four_fifths_is_fine(self) -> None:
        story = Story().opened()
        for _ in range(4):
            story.reply(50_000, local=40_000)
        assert "undercount" not in story.codes()

    def test_counting_right_again_closes_it_soon(self) -> None:
        story = Story().opened()
        for _ in range(10):
            story.reply(50_000, local=30_000)
        for _ in range(3):
            story.reply(50_000, local=49_000)
        assert "undercount" not in story.codes()

    def test_counting_too_much_is_a_remark(self) -> None:
        story = Story().opened()
        for _ in range(3):
            story.reply(50_000, local=70_000)
        assert story.severity("overcount") == "info"
        assert Story().opened().reply(50_000, local=70_000).codes() == set()

    def test_an_agent_that_believes_in_more_than_the_table_is_disputed(self) -> None:
        story = Story().say("chat.opened", model="claude-sonnet-4-5", window=1_000_000)
        found = story.finding("window_conflict")
        assert found.severity == "warning"
        assert "agent 1,000,000, table 200,000" in found.sentence

    @pytest.mark.parametrize("window", [120_000, 198_000, 203_000])
    def test_an_agent_s_own_smaller_window_is_a_setting(self, window: int) -> None:
        story = Story().say("chat.opened", model="claude-sonnet-4-5", window=window)
        assert "window_conflict" not in story.codes()

    def test_equal_steps_that_no_item_explains_are_a_running_total(self) -> None:
        story = Story().opened(window=400_000)
        for value in (33_000, 67_000, 101_000, 134_000):
            story.message(300).reply(value)
        assert story.severity("cumulative_usage") == "warning"
        assert "running total" in story.finding("cumulative_usage").sentence

    def test_equal_steps_that_items_explain_are_growth(self) -> None:
        story = Story().opened(window=400_000)
        for value in (33_000, 67_000, 101_000, 134_000):
            story.message(33_500).reply(value)
        assert "cumulative_usage" not in story.codes()

    def test_no_fall_after_two_successful_compactions(self) -> None:
        story = Story().opened(window=400_000, trigger={"tokens": 350_000})
        story.reply(100_000)
        for index in range(2):
            story.compacts(100_000 + index * 900, 20_000).reply(100_900 + index * 900)
        assert story.severity("cumulative_usage") == "warning"

    def test_one_fall_in_between_is_enough(self) -> None:
        story = Story().opened(window=400_000).reply(100_000)
        story.compacts(100_000, 20_000).reply(100_900).compacts(100_900, 20_000).reply(21_000)
        assert "cumulative_usage" not in story.codes()


class TestWatch:
    def test_within_a_tenth_of_the_trigger(self) -> None:
        assert Story().opened().reply(144_000).codes() == {"near_trigger"}
        assert Story().opened().reply(143_999).codes() == set()

    def test_one_item_above_a_fifth_of_the_budget(self) -> None:
        story = Story().opened(reserve=0).message(40_001, name="dump", role="tool")
        assert "dump" in story.finding("huge_item").sentence
        assert Story().opened(reserve=0).message(40_000).codes() == set()

    def test_it_closes_when_the_item_leaves_the_context(self) -> None:
        story = Story().opened().message(60_000, id="big").reply(70_000)
        story.compacts(70_000, 12_000, removed=["big"])
        assert "huge_item" not in story.codes()

    def test_a_jump_of_a_quarter_of_the_window_is_none(self) -> None:
        story = Story().opened().reply(20_000).reply(70_000)
        assert "jump" not in story.codes()
        assert "jump" in Story().opened().reply(20_000).reply(70_001).codes()

    def test_a_visible_refusal_is_correct_behaviour(self) -> None:
        story = Story().opened().reply(150_000)
        story.say("guard.refused", count=289_259, limit=267_904, code="CONTEXT_UNFIT")
        found = story.finding("refused")
        assert found.severity == "info"
        assert "21,355 above its limit" in found.sentence
        assert story.is_ == "watch"
        story.reply(100_000).turn().ends()
        assert "refused" not in story.codes()

    def test_a_refusal_without_numbers_is_told_in_the_agents_words_and_moves_no_load(self) -> None:
        story = Story().opened().reply(186_000).say("guard.refused", code="Prompt is too long")
        assert story.finding("refused").sentence == "The agent refused visibly: Prompt is too long."
        assert story.row.load.value == 186_000
        assert "over_window" not in story.codes()
        story.say("guard.refused", count=190_000, code="own")
        assert "refused to send 190,000 tokens (own)" in story.finding("refused").sentence

    def test_what_the_agent_counted_and_did_not_send_is_a_warning_above_the_window(self) -> None:
        story = Story().opened(window=20_000, reserve=1_000).turn()
        story.say("guard.refused", count=23_291, limit=19_000, code="CONTEXT_UNFIT")
        found = story.finding("over_window")
        assert found.severity == "warning"
        assert found.sentence == (
            "The agent did not send a prompt of 23,291 by its own count, 3,291 above the window of "
            "20,000."
        )
        assert story.state.incident is None
        story.ends("error").turn().reply(9_000).ends()
        assert story.codes() == set()

    def test_and_above_the_budget_alone(self) -> None:
        story = Story().opened(window=20_000, reserve=1_000).turn()
        story.say("guard.refused", count=19_500, limit=19_000, code="CONTEXT_UNFIT")
        assert story.severity("over_budget") == "warning"

    def test_a_count_above_the_window_that_no_guard_refused_stays_critical(self) -> None:
        story = Story().opened(window=20_000, reserve=1_000).turn()
        story.say("guard.refused", count=19_500, limit=19_000, code="CONTEXT_UNFIT")
        story.say("usage.update", used=23_291)
        assert story.severity("over_window") == "critical"

    def test_turns_that_fail_again_and_again_over_a_refusal_are_critical(self) -> None:
        story = Story().opened(window=20_000, reserve=1_000)
        for turn in ("t1", "t2"):
            story.turn(turn)
            story.say("guard.refused", count=23_291, limit=19_000, code="CONTEXT_UNFIT")
            story.ends("error", turn)
        assert story.severity("turns_failing") == "critical"

    def test_a_refusal_after_an_attempt_says_that_it_brought_no_relief(self) -> None:
        story = Story().opened().reply(186_000).compacts(186_000, 186_000)
        story.say("guard.refused", code="Prompt is too long")
        assert story.state.compactions.recent[-1].relief == "not_relieved"

    def test_retries_that_each_grow_the_prompt(self) -> None:
        story = Story().opened()
        for local in (50_000, 52_000, 54_000):
            story.say("request.sent", request=f"r{local}", local=local)
            story.say("model.failed", request=f"r{local}", error="provider")
        assert story.severity("retries_grow_prompt") == "warning"

    def test_retries_of_the_same_prompt_do_not(self) -> None:
        story = Story().opened()
        for attempt in range(5):
            story.say("request.sent", request=f"r{attempt}", local=50_000)
            story.say("model.failed", request=f"r{attempt}", error="provider")
        assert "retries_grow_prompt" not in story.codes()
