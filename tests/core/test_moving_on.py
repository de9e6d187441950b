"""Chats that went on: what was left open or unfinished behind them is no trouble any more."""

from __future__ import annotations

import pytest

from .story import MINUTE, SECOND, Story


def answered(story: Story, turn: str, prompt: int | None = None) -> Story:
    grown = 20_000 + 90 * story.seq if prompt is None else prompt
    return story.turn(turn).message(40).reply(grown).ends(turn=turn)


class TestCallsWithoutResults:
    def called(self) -> Story:
        """A call whose result never came, though the agent goes on."""
        story = Story().opened().turn().message(40)
        story.message(9, id="c", role="assistant", kind="tool_call", calls=["k"])
        return story.wait(11 * MINUTE)

    def test_the_first_request_after_its_timeout_says_so(self) -> None:
        story = self.called()
        story.ask()
        assert story.severity("broken_pairs") == "critical"

    def test_a_call_that_a_provider_has_let_through_is_not_held_against_later_requests(
        self,
    ) -> None:
        story = self.called().reply(20_000)
        assert "broken_pairs" not in story.codes()
        story.ask()
        assert "broken_pairs" not in story.codes()

    def test_its_incident_closes(self) -> None:
        story = self.called().reply(20_000)
        assert story.state.incident is not None
        for turn in ("t2", "t3", "t4"):
            answered(story, turn)
        assert story.state.incident is None
        assert len(story.changes.incidents_closed) == 1

    def test_its_late_result_is_no_result_without_a_call(self) -> None:
        story = self.called().reply(20_000)
        story.message(9, id="r", role="tool", kind="tool_result", answers=["k"])
        assert "broken_pairs" not in story.codes()

    def test_a_second_call_is_judged_for_itself(self) -> None:
        story = self.called().reply(20_000)
        story.message(9, id="c2", role="assistant", kind="tool_call", calls=["k2"])
        story.wait(11 * MINUTE).ask()
        assert story.severity("broken_pairs") == "critical"

    @pytest.mark.parametrize("held", [True, False])
    def test_a_call_that_is_not_in_the_newest_snapshot_is_not_sent(self, held: bool) -> None:
        story = self.called()
        order = [{"id": "u", "role": "user", "kind": "text", "tokens": 40, "in": "current"}]
        if held:
            call = {"id": "c", "role": "assistant", "kind": "tool_call", "tokens": 9}
            order.append({**call, "in": "current", "calls": ["k"]})
        story.say("history.snapshot", revision="1", order=order, current={"tokens": 49})
        story.ask()
        assert ("broken_pairs" in story.codes()) is held


class TestOpenRequests:
    def test_an_unanswered_request_hangs_until_a_later_one_is_answered(self) -> None:
        story = Story().opened()
        story.ask()
        story.wait(4 * MINUTE).tick()
        assert story.severity("hung") == "critical"
        story.reply(20_000)
        assert "hung" not in story.codes()

    def test_a_request_beside_it_that_left_earlier_proves_nothing(self) -> None:
        story = Story().opened()
        first = story.ask()
        story.ask()
        story.wait(4 * MINUTE).tick().reply(20_000, request=first, ms=2_000)
        assert story.severity("hung") == "critical"

    def test_one_that_is_only_slow_is_still_waited_for(self) -> None:
        story = Story().opened()
        story.ask()
        story.reply(20_000).reply(20_100).wait(3 * MINUTE).tick()
        assert story.severity("hung") == "critical"

    def test_a_lost_summary_request_is_forgotten_when_a_later_turn_is_answered(self) -> None:
        story = Story().opened()
        story.ask(purpose="utility")
        story.wait(4 * MINUTE).tick()
        assert story.severity("hung") == "critical"
        answered(story, "t1")
        assert "hung" not in story.codes()

    def test_the_turn_in_which_it_left_does_not_count(self) -> None:
        story = Story().opened().turn()
        story.ask(purpose="utility")
        story.wait(4 * MINUTE).tick().reply(20_000).ends()
        assert story.severity("hung") == "critical"

    def test_its_late_reply_is_taken_as_any_other(self) -> None:
        story = Story().opened()
        request = story.ask()
        story.wait(4 * MINUTE).tick().reply(20_000).reply(20_500, request=request)
        assert story.codes() == set()
        assert story.row.requests == 2


class TestOpenAttempts:
    def begun(self, **fields: object) -> Story:
        story = Story().opened(trigger={"tokens": 150_000}).reply(160_000)
        return story.say("compaction.started", attempt="a", trigger="proactive", **fields)

    def test_a_lost_attempt_is_over_when_a_later_turn_is_answered(self) -> None:
        story = self.begun().wait(4 * MINUTE).tick()
        assert story.severity("hung") == "critical"
        answered(story, "t1")
        assert "hung" not in story.codes()
        assert story.changes.attempts["a"].outcome == "timed_out"

    def test_one_within_its_lease_is_still_waited_for(self) -> None:
        story = answered(self.begun(lease_s=3600).wait(4 * MINUTE), "t1")
        assert story.changes.attempts["a"].outcome == "running"
        story.tick_when_due()
        assert story.severity("hung") == "critical"

    def test_its_late_end_still_replaces_that(self) -> None:
        story = answered(self.begun().wait(4 * MINUTE).tick(), "t1", prompt=160_500)
        story.say("compaction.finished", attempt="a", reported="ok", before=160_000, after=40_000)
        assert story.changes.attempts["a"].outcome == "reduced"
        assert story.row.compactions == 1


class TestReliefByOtherMeans:
    def stalled(self, **facts: object) -> Story:
        story = Story().opened(**{"trigger": {"tokens": 150_000}, **facts}).turn().reply(160_000)
        failed = {"calls": 1, "error": "quota", "model": "small"}
        for _ in range(2):
            story.compacts(160_000, 160_000, reported="failed", summarizer=failed)
        return story.reply(160_100)

    def test_three_requests_well_below_the_trigger_end_a_stall(self) -> None:
        story = self.stalled()
        assert story.severity("stalled") == "critical"
        story.reply(20_000).reply(20_100)
        assert "stalled" in story.codes()
        story.reply(20_200)
        assert not story.codes() & {"stalled", "summarizer_failing"}

    def test_a_load_that_only_dips_does_not(self) -> None:
        story = self.stalled()
        for _ in range(3):
            story.reply(20_000).reply(20_100).reply(160_000)
        assert story.severity("stalled") == "critical"

    def test_nor_one_right_below_the_trigger(self) -> None:
        story = self.stalled().reply(149_000).reply(149_100).reply(149_200)
        assert "stalled" in story.codes()

    def test_its_incident_closes_then(self) -> None:
        story = self.stalled()
        assert story.state.incident is not None
        for number in range(8):
            answered(story, f"t{number + 2}")
        assert story.state.incident is None

    def test_a_failure_after_that_is_a_new_row(self) -> None:
        story = self.stalled().reply(20_000).reply(20_100).reply(20_200).reply(160_000)
        story.compacts(
            160_000, 160_000, reported="failed", summarizer={"calls": 1, "error": "quota"}
        )
        assert story.state.compactions.no_relief == 1


class TestABlockedRescue:
    def test_it_is_past_once_a_turn_is_answered_without_it(self) -> None:
        story = Story().opened(trigger={"tokens": 150_000}).turn().reply(140_000)
        story.compacts(140_000, 140_000, attempt="a", summarizer={"calls": 0}, reported="no")
        story.say("latch.set", latch="l", scope="chat", attempt="a")
        story.fails("overflow", status=400)
        story.compacts(None, None, trigger="reactive", reported="skipped", summarizer={"calls": 0})
        assert story.severity("latched_unjustified") == "critical"
        story.reply(30_000).ends().wait(SECOND)
        assert story.severity("latched_unjustified") == "warning"
