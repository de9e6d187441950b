"""What healthy chats do all day, and what must not be said about it."""

from __future__ import annotations

import pytest

from .story import MINUTE, Story


class TestRequestsThatTakeLong:
    def asked(self, **fields: object) -> tuple[Story, str]:
        story = Story().opened().turn()
        return story, story.ask(**fields)

    def away(self, story: Story, ms: int) -> Story:
        return story.disconnected().wait(ms).connected()

    def test_one_whose_turn_was_broken_off_does_not_hang(self) -> None:
        story, _ = self.asked()
        assert "hung" not in story.ends("cancelled").tick(after=10 * MINUTE).codes()

    def test_one_whose_turn_goes_on_hangs(self) -> None:
        story, _ = self.asked()
        assert story.tick(after=10 * MINUTE).severity("hung") == "critical"

    def test_one_left_behind_by_a_failed_turn_does_not_hide_that_the_user_waits(self) -> None:
        story, _ = self.asked()
        story.ends("error").tick(after=11 * MINUTE)
        assert story.severity("unanswered") == "critical"

    def test_its_answer_may_arrive_right_after_a_reconnect(self) -> None:
        story, request = self.asked()
        self.away(story, 5 * MINUTE)
        assert "hung" not in story.codes()
        assert story.reply(50_000, request=request).codes() == set()

    def test_what_does_not_arrive_then_hangs(self) -> None:
        story, _ = self.asked()
        assert self.away(story, 5 * MINUTE).tick_when_due().severity("hung") == "critical"

    @pytest.mark.parametrize(("cap", "seconds"), [(None, 181), (2_048, 181), (64_000, 301)])
    def test_a_large_output_cap_gives_it_time_to_write(self, cap: int | None, seconds: int) -> None:
        story, _ = self.asked(max_output=cap)
        begun = story.at
        assert "hung" not in story.tick(after=(seconds - 2) * 1_000).codes()
        story.tick_when_due()
        assert (story.severity("hung"), story.at - begun) == ("critical", (seconds - 1) * 1_000)


class TestCountsThatAreMissing:
    def calibrated(self, factor: float) -> Story:
        """An agent whose own count is ``factor`` times the provider's."""
        story = Story().opened(reserve=32_000)
        for load in (150_000, 151_000, 152_000):
            story.reply(load, local=int(load * factor))
        return story

    @pytest.mark.parametrize("factor", [0.85, 1.0, 1.12])
    def test_the_agents_own_count_stands_in_on_the_providers_scale(self, factor: float) -> None:
        story = self.calibrated(factor).reply(None, local=int(153_000 * factor))
        assert story.row.load.value == pytest.approx(153_000, abs=2)
        assert "over_budget" not in story.codes()

    def test_a_provider_that_agrees_with_it_does_not_cut_the_prompt(self) -> None:
        story = self.calibrated(1.0)
        for load in range(153_000, 160_000, 1_000):
            story.message(1_000).reply(None, local=load)
            story.message(1_000).reply(load + 500, local=load + 500)
        assert "provider_truncates" not in story.codes()

    def test_pictures_are_large_in_bytes_and_small_in_tokens(self) -> None:
        story = Story().opened().reply(20_000, sent={"bytes": 80_000})
        story.reply(22_000, sent={"bytes": 900_000, "images": 2})
        assert "provider_truncates" not in story.codes()
        story.reply(22_500, sent={"bytes": 900_000, "images": 0})
        assert story.severity("provider_truncates") == "critical"

    def test_also_where_only_the_history_tells_of_them(self) -> None:
        story = Story().opened().reply(20_000, sent={"bytes": 80_000})
        story.message(None, kind="image", bytes=600_000)
        story.reply(22_000, sent={"bytes": 900_000})
        assert "provider_truncates" not in story.codes()


class TestRetries:
    def test_turns_that_people_break_off_are_no_retries(self) -> None:
        story = Story().opened()
        for turn, load in enumerate((40_000, 41_000, 42_000, 43_000)):
            story.turn(f"t{turn}")
            request = story.ask(local=load)
            story.say("model.failed", request=request, error="cancelled")
            story.ends("cancelled", f"t{turn}")
        assert "retries_grow_prompt" not in story.codes()

    def test_the_next_users_message_is_no_retry(self) -> None:
        story = Story().opened()
        for turn, load in enumerate((40_000, 41_000, 42_000, 43_000)):
            story.turn(f"t{turn}")
            story.say("model.failed", request=story.ask(local=load), error="network")
        assert "retries_grow_prompt" not in story.codes()


class TestPromptsThatTheAgentWillFold:
    """Budget 195,904, trigger 160,000."""

    def declared(self) -> Story:
        return Story().opened(trigger={"tokens": 160_000}).turn()

    def test_before_it_was_due_the_agent_may_still_compact(self) -> None:
        story = self.declared().reply(159_000).message(40_000)
        assert "projected_over" not in story.codes()

    def test_once_the_request_goes_out_it_did_not(self) -> None:
        story = self.declared().reply(159_000).message(40_000)
        story.ask()
        assert story.severity("projected_over") == "warning"

    def test_an_agent_that_compacts_between_turns_was_not_due_within_one(self) -> None:
        story = self.declared().reply(161_000).message(40_000)
        assert "projected_over" not in story.codes()

    def test_an_agent_that_was_due_is_not_trusted(self) -> None:
        story = self.declared().reply(161_000).ends().turn("t2").message(40_000)
        assert story.severity("projected_over") == "warning"

    def test_one_whose_compactions_have_helped_is(self) -> None:
        story = self.declared().reply(161_000).compacts(161_000, 40_000).reply(40_500)
        story.reply(161_000).message(40_000)
        assert "projected_over" not in story.codes()

    def test_not_while_a_latch_is_set(self) -> None:
        story = self.declared().reply(159_000)
        story.say("latch.set", latch="L", scope="chat", kind="exhausted").message(40_000)
        assert story.severity("projected_over") == "warning"

    def test_what_an_attempt_begins_with_was_never_sent(self) -> None:
        story = Story().opened(reserve=32_000).reply(None, local=150_000)
        story.say("compaction.started", attempt="a", trigger="proactive", before=178_000)
        assert "over_budget" not in story.codes()
        story.say("compaction.finished", attempt="a", reported="ok", before=178_000, after=60_000)
        assert "over_budget" not in story.codes()


class TestCompactionPoints:
    def test_an_agent_that_starts_at_92_percent_of_the_window_is_not_overdue(self) -> None:
        story = Story().opened()
        for load in range(177_000, 185_000, 1_000):
            story.reply(load)
        assert "overdue" not in story.codes()

    def test_an_agent_that_goes_up_to_its_output_cap_is_not_overdue(self) -> None:
        story = Story().opened()
        for load in range(160_000, 167_900, 1_000):
            story.reply(load, sent={"max_output": 32_000})
        assert "overdue" not in story.codes()

    def test_a_rescue_within_a_turn_does_not_show_that_the_agent_always_compacts_there(
        self,
    ) -> None:
        story = Story().opened(trigger={"tokens": 160_000}).turn().reply(150_000)
        story.say("compaction.started", attempt="a", trigger="proactive", phase="mid_turn",
                  before=190_000)  # fmt: skip
        story.say("compaction.finished", attempt="a", reported="ok", before=190_000, after=50_000)
        story.reply(50_500).reply(161_000).reply(161_500).reply(162_000)
        assert not {"over_trigger", "overdue"} & story.codes()

    def test_folding_while_nobody_works_is_no_loop_however_often_it_helps(self) -> None:
        story = Story().opened(trigger={"tokens": 140_000})
        for turn in range(5):
            story.turn(f"t{turn}").reply(90_000).ends(turn=f"t{turn}")
            story.compacts(90_000, 40_000, trigger="idle")
        assert "looping" not in story.codes()

    def test_where_it_never_helps_it_is_told(self) -> None:
        story = Story().opened(trigger={"tokens": 80_000})
        for turn in range(5):
            story.turn(f"t{turn}").reply(85_000).message(5_000).reply(90_000)
            story.ends(turn=f"t{turn}").compacts(90_000, 85_000, trigger="idle")
        story.turn("t5").reply(85_000)
        assert story.severity("looping") == "critical"
