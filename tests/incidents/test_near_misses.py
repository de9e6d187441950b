"""What the cases taught the core, and the chats close to them that must not be taken for one."""

from __future__ import annotations

import pytest

from tests.core.story import MINUTE, Story

UTILITY = {"model": "small", "window": 50_000}


def relief(story: Story) -> list[str]:
    return [view.relief.value for view in story.state.compactions.recent]


class TestTheCountWhereAnAttemptBegins:
    def test_it_is_a_reading_where_nobody_counted_better(self) -> None:
        story = Story().opened().turn().compacts(150_000, 149_900)
        assert story.state.compactions.base
        assert story.changes.readings[0].load == 150_000

    def test_a_provider_s_count_stays(self) -> None:
        story = Story().opened().turn().reply(140_000)
        story.say("compaction.started", attempt="a", trigger="proactive", before=90_000)
        assert (story.row.load.value, story.row.load.source.value) == (140_000, "provider")

    def test_of_the_history_it_tells_the_history_only(self) -> None:
        story = Story().opened(model="unheard-of", window=None).turn()
        story.say("compaction.started", attempt="a", trigger="idle", before=9_000, scope="history")
        assert (story.row.history.value, story.row.load.value) == (9_000, None)

    def test_a_history_that_is_known_stays(self) -> None:
        story = Story().opened().say("history.snapshot", revision="r", history=12_000)
        story.say("compaction.started", attempt="a", trigger="idle", before=9_000, scope="history")
        assert story.row.history.value == 12_000

    def test_an_attempt_that_begins_much_lower_shows_that_the_last_one_helped(self) -> None:
        story = Story().opened().turn().compacts(150_000, 60_000).compacts(90_000, 50_000)
        assert relief(story)[0] == "relieved"
        assert "stalled" not in story.codes()

    def test_one_that_begins_as_high_shows_that_it_did_not(self) -> None:
        story = Story().opened().turn().compacts(150_000, 60_000).compacts(151_000, 60_000)
        assert relief(story)[0] == "not_relieved"

    def test_the_very_same_count_again_may_as_well_be_an_old_one(self) -> None:
        story = Story().opened().turn().compacts(150_000, 60_000)
        story.say("compaction.started", attempt="b", trigger="proactive", before=150_000)
        assert relief(story) == ["unconfirmed"]
        assert "meter_unreliable" in story.codes()


class TestSmallGains:
    def test_two_that_free_a_little_are_stalled_by_their_own_count(self) -> None:
        story = Story().opened().turn().compacts(150_000, 147_000).compacts(150_000, 147_000)
        assert story.severity("stalled") == "warning"

    def test_one_is_not(self) -> None:
        assert "stalled" not in Story().opened().turn().compacts(150_000, 147_000).codes()

    def test_a_twentieth_is_no_small_gain(self) -> None:
        story = Story().opened().turn().compacts(150_000, 142_500)
        assert relief(story) == ["unconfirmed"]

    def test_a_declared_trigger_decides_by_the_next_reading(self) -> None:
        story = Story().opened(trigger={"tokens": 148_000}).turn().compacts(150_000, 147_000)
        assert relief(story) == ["unconfirmed"]
        assert relief(story.reply(147_100)) == ["relieved"]

    def test_a_later_reading_corrects_it(self) -> None:
        story = Story().opened(model="unheard-of", window=None).turn().compacts(150_000, 147_000)
        assert relief(story.reply(40_000)) == ["relieved"]
        assert story.state.compactions.no_relief == 0

    def test_the_reading_that_confirms_it_counts_it_once(self) -> None:
        story = Story().opened(model="unheard-of", window=None).turn()
        story.compacts(150_000, 147_000, trigger="idle").reply(149_000)
        assert story.state.compactions.no_relief == 1
        assert "stalled" not in story.codes()


class TestWhatIsSaid:
    def test_what_nobody_counted_is_not_said_to_be_0(self) -> None:
        story = Story().opened(reserve=10_000).turn().compacts(None, None)
        story.fails("overflow", stated_prompt=210_000, stated_window=200_000)
        sentence = story.finding("stalled").sentence
        assert sentence.startswith("1 compaction gave no relief")

    def test_a_failed_summary_freed_nothing(self) -> None:
        story = Story().opened(trigger={"tokens": 150_000}).turn().reply(196_000)
        story.compacts(196_000, None, summarizer={"calls": 1, "error": "timeout"})
        assert story.finding("stalled").sentence.startswith("1 compaction freed 0 of 196,000")

    def test_attempts_on_nothing_are_stopped_and_not_forced(self) -> None:
        story = Story().opened(model="unheard-of", window=None).turn()
        for before in (51_300, 51_600, 51_900):
            story.compacts(before, before + 100, trigger="idle", removed=[])
        advice = story.finding("stalled").recommended
        assert [entry.action for entry in advice] == ["manual"]

    def test_attempts_above_the_trigger_that_take_nothing_out_need_the_fallback(self) -> None:
        story = Story().opened(trigger={"tokens": 150_000}).turn().reply(160_000)
        for _ in range(2):
            story.compacts(160_000, 160_000, removed=[])
        assert story.finding("stalled").recommended[0].action == "compact_fallback"

    def test_an_unknown_window_is_told_after_what_is_special_to_the_chat(self) -> None:
        story = Story().opened(model="unheard-of", window=None).turn().reply(20_000)
        story.say("guard.refused", count=30_000, limit=25_000)
        assert story.codes() == {"window_unknown", "refused"}
        assert "refused to send 30,000" in story.page.headline


class TestOverAtTheNextRequest:
    def test_a_failed_attempt_is_stalled_where_the_projection_is_over_the_budget(self) -> None:
        story = self.failing(20_000)
        assert story.severity("stalled") == "critical"

    def test_and_not_where_it_fits(self) -> None:
        assert "stalled" not in self.failing(2_000).codes()

    def failing(self, added: int) -> Story:
        story = Story().opened().turn().reply(185_000).message(added)
        return story.compacts(None, None, summarizer={"calls": 1, "error": "overflow"})


class TestGrowth:
    def grown(self, after: int) -> Story:
        story = Story().opened().turn().reply(30_000)
        return story.compacts(30_000, None, reported="boundary").reply(after)

    def test_a_count_after_it_measures_what_nobody_said(self) -> None:
        story = self.grown(90_000)
        assert story.severity("grew") == "warning"
        assert "30,000 to 90,000" in story.finding("grew").sentence

    def test_within_the_noise_it_is_none(self) -> None:
        assert "grew" not in self.grown(30_250).codes()

    def test_it_closes_at_the_next_answered_turn(self) -> None:
        assert "grew" not in self.grown(90_000).ends().codes()

    def test_to_exactly_the_window_it_is_in_doubt(self) -> None:
        story = Story().opened().turn().compacts(180_000, 200_000)
        assert (story.severity("grew"), story.severity("meter_unreliable")) == (
            "warning", "warning",
        )  # fmt: skip

    def test_to_one_below_the_window_it_is_certain(self) -> None:
        story = Story().opened().turn().compacts(180_000, 199_999)
        assert story.severity("grew") == "critical"
        assert "meter_unreliable" not in story.codes()


class TestHalvedPrompts:
    def halved(self, prompt: int, *, before: int | None = None, local: int | None = None) -> Story:
        story = Story().opened(window=65_536).turn()
        if before is not None:
            story.reply(before)
        return story.reply(prompt, local=local)

    def test_half_the_window_and_2_of_a_longer_prompt_is_cut(self) -> None:
        assert self.halved(32_770, before=65_530).severity("provider_truncates") == "critical"
        assert self.halved(32_770, local=70_000).severity("provider_truncates") == "critical"

    @pytest.mark.parametrize("prompt", [32_769, 32_771])
    def test_one_token_beside_it_is_a_coincidence(self, prompt: int) -> None:
        assert "provider_truncates" not in self.halved(prompt, before=65_530).codes()

    def test_a_prompt_of_about_that_size_is_one(self) -> None:
        assert "provider_truncates" not in self.halved(32_770, before=31_000).codes()
        assert "provider_truncates" not in self.halved(32_770).codes()

    def test_after_a_compaction_it_is_what_was_left(self) -> None:
        story = Story().opened(window=65_536).turn().reply(60_000).compacts(60_000, 32_000)
        assert "provider_truncates" not in story.reply(32_770).codes()


class TestPlateau:
    def level(self, prompt: int, *, items: bool = True) -> Story:
        story = Story().opened(model="unheard-of", window=None)
        for _ in range(4):
            story.turn().message(None) if items else story.turn()
            story.reply(prompt).ends()
        return story

    def test_items_of_unknown_size_make_a_count_of_a_window_s_size_suspect(self) -> None:
        assert self.level(131_072).severity("provider_truncates") == "critical"

    def test_another_count_may_be_a_prompt_sent_again(self) -> None:
        assert "provider_truncates" not in self.level(131_000).codes()

    def test_without_new_items_it_is_a_prompt_sent_again(self) -> None:
        assert "provider_truncates" not in self.level(131_072, items=False).codes()


class TestAnOverflow:
    def test_far_above_the_last_request_it_names_what_came_in(self) -> None:
        story = Story().opened(window=131_072).turn().reply(16_000)
        story.message(90_000, role="tool", kind="tool_result", answers=["x"], name="crawl")
        story.fails("overflow", stated_prompt=152_000, stated_window=131_072)
        assert "crawl" in story.finding("jump").sentence

    def test_near_the_last_request_it_is_no_jump(self) -> None:
        story = Story().opened(window=131_072).turn().reply(120_000)
        story.fails("overflow", stated_prompt=131_500, stated_window=131_072)
        assert "jump" not in story.codes()

    def test_what_was_asked_for_the_answer_is_counted_in_where_the_prompt_alone_fits(self) -> None:
        story = Story().opened(window=131_072).turn()
        request = story.ask(max_output=32_000)
        story.say("model.failed", request=request, error="overflow", stated_prompt=99_509)
        assert "437 above the window" in story.finding("over_window").sentence

    def test_and_not_where_it_does_not(self) -> None:
        story = Story().opened(window=131_072).turn()
        request = story.ask(max_output=32_000)
        story.say("model.failed", request=request, error="overflow", stated_prompt=140_000)
        assert "32,000" not in story.finding("over_window").sentence

    @pytest.mark.parametrize(("trigger", "reached"), [(968_000, False), (930_000, True)])
    def test_a_refused_size_shows_that_a_higher_trigger_is_never_reached(
        self, trigger: int, reached: bool
    ) -> None:
        story = Story().opened(window=1_000_000, trigger={"tokens": trigger}).turn()
        story.fails("overflow", stated_prompt=940_000)
        assert ("trigger_unreachable" not in story.codes()) is reached


class TestLoops:
    def test_nothing_taken_out_and_no_count_against_it_is_a_wrong_alarm_of_the_agent(self) -> None:
        story = Story().opened(model="unheard-of", window=None).turn()
        for _ in range(3):
            story.compacts(None, None, trigger="reactive", removed=[])
        found = story.finding("looping")
        assert found.recommended[0].action == "stop_turn"
        assert [advice.action for advice in found.discouraged] == ["compact_fallback"]

    def test_above_the_trigger_the_fallback_is_right(self) -> None:
        story = Story().opened(trigger={"tokens": 150_000}).turn().reply(160_000)
        for _ in range(3):
            story.compacts(160_000, 160_000, removed=[]).reply(160_000)
        found = story.finding("looping")
        assert found.recommended[0].action == "compact_fallback"
        assert found.discouraged == ()

    def one_in_each_turn(self, **facts: object) -> Story:
        story = Story().opened(**facts)
        for number in range(4):
            story.turn(f"t{number}").reply(170_000).compacts(None, None).reply(169_900)
            story.ends(turn=f"t{number}")
        return story

    def test_without_buttons_the_compaction_that_loops_is_not_the_advice(
        self,
    ) -> None:
        story = Story(read_only=True).opened().turn()
        for _ in range(4):
            story.compacts(None, None)
        advice = story.page.headline_advice
        assert advice is not None and advice.action == "manual"
        assert "Stop the turn" in advice.text and "Compact" not in advice.text

    def test_a_loop_over_turns_stands_where_being_stalled_is_only_a_warning(self) -> None:
        story = self.one_in_each_turn(model="unheard-of", window=None)
        assert (story.severity("looping"), story.severity("stalled")) == ("critical", "warning")
        assert story.is_ == "looping"

    def test_being_stalled_explains_it_where_that_is_critical(self) -> None:
        story = self.one_in_each_turn(trigger={"tokens": 150_000})
        assert (story.is_, story.finding("looping").suppressed_by) == ("stalled", "stalled")

    def in_one_turn(self, afters: tuple[int | None, ...], requests: int = 1) -> Story:
        """One compaction each, then ``requests`` that nobody counts and one with that count."""
        story = Story().opened(trigger={"tokens": 150_000}).turn().reply(160_000)
        for after in afters:
            story.compacts(None, None)
            for _ in range(requests - 1):
                story.reply(None)
            story.reply(after)
            if after is not None and after < 150_000:
                story.reply(151_000)
        return story

    def test_a_compaction_that_has_just_ended_is_held_against_nobody(self) -> None:
        story = self.in_one_turn((50_000, 50_000)).compacts(None, None)
        assert (story.is_, story.severity("looping")) == ("looping", "warning")
        assert "each with real relief" in story.finding("looping").sentence

    def test_one_of_three_without_relief_is_no_crisis(self) -> None:
        story = self.in_one_turn((50_000, 155_000, 50_000))
        assert story.severity("looping") == "warning"
        assert "not each with relief" in story.finding("looping").sentence

    def test_three_without_relief_are(self) -> None:
        assert self.in_one_turn((155_000,) * 3).severity("looping") == "critical"

    def test_nobody_counts_and_each_fires_again_at_once(self) -> None:
        assert self.in_one_turn((None,) * 4).severity("looping") == "critical"

    def test_nobody_counts_and_some_requests_lie_between(self) -> None:
        story = self.in_one_turn((None,) * 3, requests=3)
        assert story.severity("looping") == "warning"
        assert "not known" in story.finding("looping").sentence

    def over_turns(self, afters: tuple[int | None, ...]) -> Story:
        story = Story().opened(trigger={"tokens": 150_000})
        for number, after in enumerate(afters):
            story.turn(f"t{number}").compacts(None, None)
            story.reply(after).ends(turn=f"t{number}")
        return story

    def test_one_in_each_of_three_turns_that_nobody_counts_is_a_warning(self) -> None:
        assert self.over_turns((None,) * 3).severity("looping") == "warning"

    def test_two_of_them_are_nothing(self) -> None:
        assert "looping" not in self.over_turns((None,) * 2).codes()

    def test_one_that_helped_makes_it_ordinary(self) -> None:
        assert "looping" not in self.over_turns((155_000, 155_000, 40_000)).codes()

    def test_the_third_is_waited_for(self) -> None:
        story = self.over_turns((155_000, 155_000)).turn("t2").compacts(None, None)
        assert "looping" not in story.codes()
        assert story.reply(155_000).severity("looping") == "critical"


class TestSummarizers:
    def failing(self, times: int, wanted: int) -> Story:
        story = Story().opened(utility=UTILITY).turn()
        for _ in range(times):
            story.say("request.sent", request=story.ask(), purpose="utility", local=wanted)
            story.compacts(None, None, summarizer={"calls": 1, "error": "overflow"})
        return story

    def test_one_too_small_for_its_input_explains_that_it_fails(self) -> None:
        story = self.failing(1, 78_000)
        assert story.is_ == "cannot_fit"
        assert story.finding("summarizer_failing").suppressed_by == "summarizer_too_small"

    def test_a_row_of_failures_stands_for_itself(self) -> None:
        assert self.failing(3, 78_000).finding("summarizer_failing").suppressed_by is None

    def test_one_that_holds_its_input_does_not(self) -> None:
        assert self.failing(1, 40_000).finding("summarizer_failing").suppressed_by is None


class TestLatches:
    def stuck(self, after: int) -> Story:
        story = Story().opened(model="unheard-of", window=None).turn().reply(90_000)
        story.compacts(90_000, None, attempt="a", trigger="idle", reported="ok")
        story.say("latch.set", latch="L", kind="no_gain", scope="chat", attempt="a")
        return story.reply(after)

    def test_one_for_no_gain_is_wrong_once_the_gain_shows(self) -> None:
        assert self.stuck(30_000).page.latches[0].justified is False

    def test_and_right_while_none_does(self) -> None:
        assert self.stuck(89_000).page.latches[0].justified is True

    def held(self, requests: int) -> Story:
        story = Story().opened(trigger={"tokens": 150_000})
        story.say("latch.set", latch="L", kind="lock_held", scope="chat", holder={"alive": True})
        for number in range(requests):
            story.turn(f"t{number}").reply(160_000 + number).ends(turn=f"t{number}")
        return story

    def test_a_latch_explains_why_nothing_is_tried_and_the_trigger_is_still_crossed(self) -> None:
        story = self.held(4)
        assert story.is_ == "saturated"
        assert story.finding("overdue").suppressed_by == "latched"
        advice = story.page.headline_advice
        assert advice is not None and advice.action == "compact_fallback"

    def test_an_attempt_that_it_sends_away_changes_no_reading(self) -> None:
        story = self.held(1).compacts(None, None, reported="skipped")
        assert (story.row.load.value, story.row.load.source.value) == (160_000, "provider")
        assert "load_pending" not in story.codes()


def test_what_stopped_the_turn_is_the_agent_s_own_count_of_it() -> None:
    story = Story().opened().turn()
    for _ in range(2):
        for _ in range(5):
            story.empty(None)
        story.say("agent.stopped", reason="too many", count=5, limit=5).ends("stopped")
        story.wait(MINUTE)
    assert story.finding("stopped").sentence.startswith("5 unusable replies ended the turn")
