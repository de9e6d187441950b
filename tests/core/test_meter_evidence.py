"""Meters that are wrong, by the cases that showed how: said aloud, with the right load beside."""

from __future__ import annotations

import pytest

from .story import Story

ANTHROPIC = {"dialect": "anthropic", "output": 60}


def sentence(story: Story, code: str = "meter_unreliable") -> str:
    return story.finding(code).sentence


class TestCumulativeCounters:
    def test_c62_three_equal_turns_are_a_running_total_and_the_last_one_is_named(self) -> None:
        story = Story().opened(window=400_000)
        for prompt in (33_000, 67_000, 101_000):
            story.turn().reply(prompt).ends()
        assert story.severity("cumulative_usage") == "warning"
        assert "the last request alone is about 34,000" in sentence(story, "cumulative_usage")
        assert story.is_ == "unreliable"

    def test_it_stays_one_while_the_single_requests_grow(self) -> None:
        story = Story().opened(window=1_000_000)
        total = 0
        for prompt in (33_000, 34_000, 34_500, 36_000, 39_000, 43_000):
            total += prompt
            story.turn().reply(total).ends()
        assert "the last request alone is about 43,000" in sentence(story, "cumulative_usage")

    def test_it_ends_with_the_first_request_that_is_counted_alone(self) -> None:
        story = Story().opened(window=400_000)
        for prompt in (33_000, 67_000, 101_000, 35_000):
            story.reply(prompt)
        assert "cumulative_usage" not in story.codes()

    @pytest.mark.parametrize("loads", [(20_000, 40_000), (20_000, 30_000, 50_000, 70_000)])
    def test_a_first_doubling_or_a_later_equal_step_is_growth(self, loads: tuple[int, ...]) -> None:
        story = Story().opened(window=400_000)
        for load in loads:
            story.reply(load)
        assert "cumulative_usage" not in story.codes()

    def test_equal_steps_that_the_items_explain_are_growth(self) -> None:
        story = Story().opened(window=400_000).reply(20_000)
        for load in (40_000, 60_000, 80_000):
            story.message(19_800).reply(load)
        assert "cumulative_usage" not in story.codes()

    def test_a_summed_counter_never_proves_a_larger_window(self) -> None:
        story = Story().opened(window=150_000)
        for prompt in (40_000, 80_000, 120_000, 160_000):
            story.reply(prompt)
        assert story.row.window.value == 150_000

    def test_c12_no_fall_after_two_compactions_names_what_the_agent_counts(self) -> None:
        story = Story().opened(window=200_000).reply(100_000)
        for load in (105_000, 110_000):
            story.compacts(load, 30_000).reply(load)
        text = sentence(story, "cumulative_usage")
        assert "did not fall after 2 successful compactions" in text
        assert "the agent counts 30,000" in text
        assert (story.is_, story.row.severity) == ("unreliable", "warning")


class TestZeroComponents:
    def test_c60_the_last_good_count_stands_beside_an_estimate(self) -> None:
        story = Story().opened(window=258_400).turn().reply(212_134)
        usage = {"dialect": "codex", "input": 0, "output": 0, "total": 940_499}
        story.reply(None, usage=usage)
        assert "940,499 cannot be right" in sentence(story)
        assert "the last one that can be is 212,134" in sentence(story)
        story.compacts(212_134, None, reported="context_compacted").reply(None, usage=usage)
        assert not story.row.load.reliable
        assert "212,134" not in sentence(story)
        story.reply(48_687)
        assert "meter_unreliable" not in story.codes()
        attempt = story.state.compactions.recent[-1]
        assert (attempt.before, attempt.after, attempt.relief) == (212_134, 48_687, "relieved")

    def test_c49_a_display_that_was_reset_to_zero_is_no_relief(self) -> None:
        story = Story().opened(window=121_600, reserve=0).reply(117_322)
        story.reply(None, usage={"dialect": "codex", "input": 0, "output": 0, "total": 0})
        assert story.row.load.value == 117_322


class TestClampedValues:
    def test_c19_growth_to_exactly_the_window_is_growth_and_suspect(self) -> None:
        story = Story().opened(window=258_400).reply(244_138)
        story.compacts(244_138, 258_400, trigger="manual")
        assert "grew" in story.codes()
        assert "looks clamped" in sentence(story)
        assert "the last one that can be is 244,138" in sentence(story)
        assert not story.row.load.reliable
        story.reply(246_000)
        assert "meter_unreliable" not in story.codes()

    def test_c03_a_gauge_above_the_window_is_not_cut_to_it(self) -> None:
        story = Story().opened(window=272_000).say("usage.update", used=508_100, size=272_000)
        assert story.row.load.value == 508_100
        assert story.row.headroom.window == 272_000 - 508_100


class TestStaleAnchors:
    def test_c61_the_agent_s_own_gauge_shows_the_count_from_before_the_compaction(self) -> None:
        story = Story().opened(window=400_000).say("usage.update", used=363_095)
        story.compacts(363_095, 139_025).say("usage.update", used=363_095)
        assert "from before the compaction" in sentence(story)
        assert "after the compaction the agent counts 139,025" in sentence(story)
        assert "stalled" not in story.codes()

    def test_c61_a_gauge_that_stands_still_while_the_chat_grows_is_frozen(self) -> None:
        story = Story().opened(window=256_000).say("usage.update", used=235_278)
        for _ in range(3):
            story.reply(None).message(2_000).say("usage.update", used=235_278)
        assert "cannot be right" in sentence(story)
        assert "about 241,278" in sentence(story)

    def test_a_gauge_repeated_within_one_reply_is_not(self) -> None:
        story = Story().opened(window=256_000).say("usage.update", used=235_278)
        for _ in range(6):
            story.message(300).say("usage.update", used=235_278)
        assert "meter_unreliable" not in story.codes()

    def test_a_gauge_that_stands_still_in_a_chat_that_does_too_is_not(self) -> None:
        story = Story().opened(window=256_000).say("usage.update", used=235_278)
        for _ in range(6):
            story.reply(None).say("usage.update", used=235_278)
        assert "meter_unreliable" not in story.codes()


class TestDoubleCountedCaches:
    def test_a_sum_above_the_window_whose_input_holds_the_cache_is_counted_once(self) -> None:
        story = Story().opened(window=200_000)
        story.reply(None, usage={**ANTHROPIC, "input": 130_211, "cache_read": 129_800})
        assert not story.row.load.reliable
        assert "260,011 accepted above a window of 200,000" in sentence(story)
        assert "counted once it is 130,211" in sentence(story)
        assert story.row.window.source == "agent"

    def test_a_doubled_sum_proves_no_larger_window_although_growth_explains_it(self) -> None:
        story = Story().opened(window=200_000)
        story.reply(None, usage={**ANTHROPIC, "input": 98_000, "cache_read": 97_000})
        story.message(10_000)
        story.reply(None, usage={**ANTHROPIC, "input": 103_000, "cache_read": 102_000})
        assert (story.row.window.value, story.row.window.source) == (200_000, "agent")
        assert "counted once it is 103,000" in sentence(story)

    def test_c58_a_run_s_total_is_refused_as_a_load(self) -> None:
        story = Story().opened(window=200_000).reply(60_000)
        story.reply(None, usage={**ANTHROPIC, "input": 27, "cache_read": 2_400_000})
        assert not story.row.load.reliable
        assert "the last one that can be is 60,000" in sentence(story)
        assert story.is_ == "unreliable"

    def test_a_small_input_beside_a_large_cache_is_anthropic_as_it_should_be(self) -> None:
        story = Story().opened(window=200_000)
        story.reply(
            None, usage={**ANTHROPIC, "input": 8, "cache_read": 154_000, "cache_write": 984}
        )
        assert (story.row.load.value, story.row.load.reliable) == (154_992, True)

    def test_a_cold_cache_below_the_window_is_not_doubted(self) -> None:
        story = Story().opened(window=200_000)
        story.reply(None, usage={**ANTHROPIC, "input": 90_000, "cache_read": 60_000})
        assert (story.row.load.value, story.row.load.reliable) == (150_000, True)


class TestPlateaus:
    def test_c50_identical_counts_while_the_history_grows_say_what_was_sent(self) -> None:
        story = Story().opened(window=262_144).reply(196_608)
        for _ in range(2):
            story.message(9_000).reply(196_608)
        text = sentence(story, "provider_truncates")
        assert "3 requests counted exactly 196,608" in text
        assert "about 214,608" in text

    def test_c40_half_the_window_counted_of_what_was_sent(self) -> None:
        story = Story().opened(window=4_096).reply(2_000, sent={"bytes": 8_100})
        story.reply(2_050, sent={"bytes": 31_600})
        text = sentence(story, "provider_truncates")
        assert "2,050" in text and "about 7,900" in text
        assert story.severity("provider_truncates") == "critical"

    def test_c40_exactly_half_the_window_says_what_the_agent_counted(self) -> None:
        story = Story().opened(window=65_536).reply(32_770, local=65_900)
        assert "far below the about 65,900" in sentence(story, "provider_truncates")


class TestWindowsByEvidence:
    def test_c38_an_accepted_request_above_the_declared_window_moves_to_the_known_one(self) -> None:
        story = Story().say("chat.opened", model="claude-fable-5[1m]", window=200_000)
        story.reply(198_000).message(21_000).reply(219_313)
        window = story.row.window
        assert (window.value, window.source, window.at_least) == (1_000_000, "evidence", False)
        assert story.row.headroom.window == 1_000_000 - 219_313
        assert {"over_window", "over_budget", "meter_unreliable"}.isdisjoint(story.codes())

    def test_c14_a_window_below_the_first_accepted_request_is_impossible(self) -> None:
        story = Story().say("chat.opened", model="gpt-5.5", window=2_432).reply(25_000)
        assert (story.row.window.value, story.row.window.source) == (1_050_000, "evidence")
        assert story.severity("window_conflict") == "warning"
        assert story.severity("over_window") is None

    def test_c63_a_step_of_many_windows_is_the_counter_s_fault(self) -> None:
        story = Story().opened(window=200_000).reply(47_872).compacts(47_872, 20_000).reply(45_864)
        story.ask(local=7_667_872)
        story.say("usage.update", used=7_667_872)
        assert story.severity("over_window") is None

    def test_c36_a_picture_counted_as_text_is_no_overflow(self) -> None:
        story = Story().opened(window=200_000).say("usage.update", used=30_000)
        story.say("usage.update", used=610_000)
        assert "a step of 580,000 tokens without an item" in sentence(story)
        assert "over_window" not in story.codes()
