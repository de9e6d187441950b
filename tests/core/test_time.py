"""Findings that only the passing of time shows: they rest on ticks, so that a replay agrees."""

from __future__ import annotations

from ctxhealth.core.deadlines import next_deadline

from .story import MINUTE, SECOND, Story


def deadline(story: Story) -> int | None:
    return next_deadline(story.state, story.rules)


class TestHung:
    def test_a_request_without_an_answer_after_three_minutes(self) -> None:
        story = Story().opened().turn()
        story.ask()
        sent = story.at
        assert deadline(story) == sent + 180 * SECOND
        story.tick_when_due()
        assert story.severity("hung") == "critical"
        assert story.is_ == "hung"

    def test_a_moment_before_it_is_only_slow(self) -> None:
        story = Story().opened().turn()
        story.ask()
        story.tick(after=180 * SECOND - 1)
        assert story.codes() == set()

    def test_a_chat_with_slow_requests_is_given_five_medians(self) -> None:
        story = Story().opened().turn()
        for _ in range(3):
            story.reply(9_000, ms=2 * MINUTE)
        story.ask()
        assert deadline(story) == story.at + 10 * MINUTE
        story.tick(after=9 * MINUTE)
        assert "hung" not in story.codes()

    def test_the_answer_ends_it(self) -> None:
        story = Story().opened().turn()
        request = story.ask()
        story.tick_when_due().reply(9_000, request=request)
        assert "hung" not in story.codes()

    def test_an_attempt_past_its_lease_timed_out_and_a_late_end_replaces_that(self) -> None:
        story = Story().opened(trigger={"tokens": 150_000}).reply(160_000)
        story.say("compaction.started", attempt="a", trigger="proactive", lease_s=60)
        story.tick_when_due()
        assert story.changes.attempts["a"].outcome == "timed_out"
        assert story.severity("hung") == "critical"
        story.say("compaction.finished", attempt="a", reported="ok", before=160_000, after=40_000)
        assert story.changes.attempts["a"].outcome == "reduced"
        assert "hung" not in story.codes()

    def test_while_the_agent_is_offline_nobody_knows(self) -> None:
        story = Story().opened().turn()
        story.ask()
        story.disconnected().tick(after=20 * MINUTE)
        assert "hung" not in story.codes()

    def test_a_restarted_agent_will_not_answer_the_old_process_s_request(self) -> None:
        story = Story(live=False).connected(epoch="e1").opened().turn()
        story.ask()
        story.connected(epoch="e2").tick(after=20 * MINUTE)
        assert "hung" not in story.codes()

    def test_an_old_transcript_is_not_hung_and_one_being_written_is(self) -> None:
        for age, expected in ((2 * 60 * MINUTE, None), (30 * MINUTE, "critical")):
            story = Story(read_only=True).opened().turn()
            story.ask()
            story.tick(after=age)
            assert story.severity("hung") == expected


class TestUnanswered:
    def test_a_user_who_waits_ten_minutes_with_nothing_under_way(self) -> None:
        story = Story().opened().turn()
        since = story.at
        story.ends("error")
        assert deadline(story) == since + 10 * MINUTE
        story.tick_when_due()
        assert story.severity("unanswered") == "critical"
        assert story.is_ == "stopped"

    def test_a_moment_before_it_is_not_said(self) -> None:
        story = Story().opened().turn()
        since = story.at
        story.ends("error").tick(after=since + 10 * MINUTE - story.at - 1)
        assert "unanswered" not in story.codes()

    def test_a_tool_that_runs_is_under_way(self) -> None:
        story = Story().opened().turn()
        story.message(9, role="assistant", kind="tool_call", calls=["c"])
        story.tick(after=15 * MINUTE)
        assert "unanswered" not in story.codes()
        assert deadline(story) is None

    def test_an_open_turn_that_worked_a_minute_ago_is_under_way(self) -> None:
        story = Story().opened().turn()
        for _ in range(12):
            story.wait(MINUTE).reply(9_000)
        story.tick(after=MINUTE)
        assert "unanswered" not in story.codes()

    def test_the_answer_ends_it(self) -> None:
        story = Story().opened().turn().ends("error").tick_when_due()
        story.turn("t2", "continuation").reply(9_000).ends(turn="t2")
        assert story.codes() == set()

    def test_a_closed_chat_keeps_nobody_waiting(self) -> None:
        story = Story().opened().turn().ends("error").say("chat.closed")
        assert deadline(story) is None
        assert story.row.waiting_since is None
        assert story.row.connection == "closed"

    def test_a_stopped_agent_explains_it(self) -> None:
        story = Story().opened().turn().say("agent.stopped", reason="limit").ends("stopped")
        story.tick_when_due()
        assert story.finding("unanswered").suppressed_by == "stopped"


class TestConnection:
    def test_an_idle_healthy_chat_has_no_deadline_and_is_simply_offline(self) -> None:
        story = Story().opened().turn().reply(9_000).ends()
        assert deadline(story) is None
        story.disconnected()
        assert story.row.connection == "offline"
        assert story.codes() == set()
        assert deadline(story) is None

    def test_a_chat_somebody_waits_for_is_late_first_and_then_offline(self) -> None:
        story = Story().opened().turn().disconnected()
        assert story.row.connection == "late"
        assert story.codes() == {"agent_late"}
        story.tick_when_due()
        assert story.row.connection == "offline"
        assert story.severity("agent_offline") == "warning"
        assert story.is_ == "degraded"

    def test_coming_back_in_time_is_nothing(self) -> None:
        story = Story().opened().turn().disconnected().connected()
        assert story.row.connection == "live"
        assert story.codes() == set()

    def test_the_end_of_an_older_connection_changes_nothing(self) -> None:
        story = Story(live=False).connected(epoch="e").opened()
        story.state.link.conn_no = 2
        story.disconnected()
        assert story.row.connection == "live"

    def test_advice_says_why_it_cannot_be_followed(self) -> None:
        story = Story().opened().reply(150_000).fails("overflow").disconnected()
        advice = story.finding("over_window").recommended[0]
        assert (advice.action, advice.available) == ("compact_fallback", False)
        assert advice.why == "the agent is offline"

    def test_a_read_only_chat_says_so_before_the_press(self) -> None:
        story = Story(read_only=True).opened().reply(150_000).fails("overflow")
        assert story.row.connection == "read_only"
        advice = story.finding("over_window").recommended[0]
        assert (advice.action, advice.available) == ("manual", True)


def test_a_past_deadline_is_looked_at_once() -> None:
    story = Story(read_only=True).opened().turn()
    story.ask()
    story.tick(after=100 * MINUTE)
    assert deadline(story) is None
