"""One incident from its first evidence to calm: opening, root, figures, closing."""

from __future__ import annotations

import pytest

from ctxhealth.core.incidents_causes import EFFECTS, LEADS_TO, RANK
from ctxhealth.core.incidents_model import Cause, IncidentView
from ctxhealth.core.incidents_words import say_cause, say_root
from ctxhealth.core.state import decode_state, encode_state
from ctxhealth.wire.events import ServerDisconnected

from .pairs import PAIRS
from .story import MINUTE, SECOND, Story
from .test_incidents import (
    UTILITY,
    agent_zero,
    agent_zero_stopped,
    claude_code,
    empty_summary,
    maka,
    maka_blocked,
    qwenpaw,
)


def open_view(story: Story) -> IncidentView:
    """The open incident as the store gets it: made after the state went through its bytes."""
    assert story.state.incident is not None
    story.state = decode_state(encode_state(story.state))
    story.changes.state = story.state
    views = story.changes.incidents
    return views[story.row.incident or 0]


def closed_views(story: Story) -> list[IncidentView]:
    return story.changes.incidents_closed


def chain(view: IncidentView) -> list[str]:
    return [link.code for link in view.chain]


def recovered() -> Story:
    """The stopped chat of Agent Zero after a fallback that helped and an answer."""
    story = agent_zero_stopped().command("compact_fallback")
    story.compacts(
        140_261,
        60_000,
        trigger="forced",
        scope="history",
        reported="fell_back",
        steps=[{"step": "evict", "before": 140_261, "after": 60_000, "calls": 0}],
        lossy=True,
    )
    story.say("command.progress", command="cmd1", state="succeeded", before=140_261, after=60_000)
    story.turn("t2", "continuation").reply(70_000)
    return story.ends(turn="t2")


class TestOpening:
    def test_a_warning_opens_none(self) -> None:
        story = empty_summary(agent_zero().turn().message(100), 140_261)
        assert story.severity("summarizer_failing") == "warning"
        assert story.row.incident is None and story.row.cause is None

    def test_a_remark_opens_none(self) -> None:
        story = claude_code().turn("u").reply(None, usage={
            "dialect": "anthropic", "output": 60, "input": 165_000, "cache_read": 0,
        })  # fmt: skip
        assert story.is_ == "watch"
        assert story.row.incident is None

    def test_a_structural_latch_that_is_only_watched_opens_none(self) -> None:
        assert maka().row.incident is None

    def test_the_first_critical_finding_opens_it_and_the_next_ones_join(self) -> None:
        story = agent_zero().turn().message(100)
        empty_summary(empty_summary(story, 140_261), 140_261)
        opened = story.seq
        assert story.row.incident == opened
        empty_summary(story, 140_261)
        story.say("agent.stopped", reason="unusable replies in a row", count=5, limit=5)
        assert story.row.incident == opened
        assert closed_views(story) == []
        assert open_view(story).worst_state == "stopped"

    @pytest.mark.parametrize("code", PAIRS)
    @pytest.mark.parametrize("on", [True, False])
    def test_only_what_is_critical_opens_one(self, code: str, on: bool) -> None:
        story = PAIRS[code](on)
        worst = {view.severity for view in story.changes.findings.values()}
        has_one = story.row.incident is not None or bool(closed_views(story))
        assert has_one or story.row.severity != "critical"
        assert not has_one or "critical" in worst


class TestTheChain:
    def test_agent_zero_s_runs_from_the_empty_summary_to_the_stop(self) -> None:
        view = open_view(agent_zero_stopped())
        assert view.root == "summarizer_empty"
        told = chain(view)
        assert told[0] == "summarizer_empty" and told[-1] == "stopped"
        assert told.index("stalled") < told.index("stopped")
        root = view.chain[0]
        assert (root.kind, root.count, root.root) == ("attempt", 3, True)
        assert root.sentence == (
            "The utility model glm-flash answers nothing: 3 compactions freed 0 of 140,261 history"
            " tokens."
        )
        assert view.sentence.startswith("The utility model glm-flash answers nothing")
        assert "; 5 unusable replies ended the turn (" in view.sentence
        assert [link.kind for link in view.chain if link.code == "stopped"] == ["stop"]

    def test_it_starts_with_the_first_evidence_of_the_root_before_it_opened(self) -> None:
        story = agent_zero_stopped()
        first = story.state.compactions.recent[0]
        view = open_view(story)
        assert (view.started_seq, view.started_at) == (first.finished_seq, first.finished_at)
        assert view.started_seq < view.opened_seq == view.chain[2].seq
        assert view.detected_at == view.opened_at

    def test_a_failure_that_was_over_before_is_no_root(self) -> None:
        story = empty_summary(agent_zero().turn().message(100), 140_261)
        story.compacts(140_261, 60_000, scope="history", summarizer={
            **UTILITY, "calls": 1, "input": 9_700, "output": 800,
        }).reply(70_000).ends()  # fmt: skip
        assert story.is_ == "healthy"
        story.turn("t2").say("agent.stopped", reason="limit", count=5)
        assert open_view(story).root == "stopped"
        assert chain(open_view(story)) == ["stopped"]

    def test_maka_s_root_is_the_latch_and_not_the_pass_that_found_nothing(self) -> None:
        view = open_view(maka_blocked())
        assert view.root == "latch_structural"
        assert {"nothing_foldable", "latch_structural", "latched_unjustified"} <= set(chain(view))
        latch = next(link for link in view.chain if link.root)
        assert (latch.kind, latch.seq) == ("latch", maka().seq)
        assert "its reason does not justify it" in latch.sentence

    def test_qwenpaw_s_root_is_the_count_that_is_too_low(self) -> None:
        view = open_view(qwenpaw().empty(196_602, local=117_961).ends("silent"))
        assert view.root == "undercount"
        assert chain(view)[-1] == "silent_empty"
        assert view.empties == 1

    def test_a_later_critical_finding_may_show_that_the_root_stands_further_up(self) -> None:
        story = agent_zero().turn().message(100).fails("overflow", status=400)
        assert open_view(story).root == "over_window"
        for _ in range(3):
            empty_summary(story, 140_261)
        view = open_view(story)
        assert view.root == "summarizer_empty"
        assert view.cause.summarizer_model == "glm-flash"
        assert view.started_seq == view.opened_seq

    def test_what_fails_later_is_not_the_root_of_what_it_does_not_lead_to(self) -> None:
        story = agent_zero().turn().message(9, id="u")
        story.message(9, id="c", role="assistant", kind="tool_call", calls=["k"])
        story.message(9, id="r", role="tool", kind="tool_result", answers=["k"])
        story.compacts(141_000, 140_500, scope="history", removed=["c"])
        assert open_view(story).root == "broken_pairs"
        for _ in range(3):
            empty_summary(story, 140_261)
        assert story.severity("stalled") == "critical"
        assert open_view(story).root == "broken_pairs"

    def test_a_condition_that_ends_and_comes_back_is_one_link(self) -> None:
        story = agent_zero_stopped()
        story.turn("t2").ends(turn="t2")
        story.turn("t3").say("agent.stopped", reason="again", count=5).ends("stopped", "t3")
        links = [link for link in open_view(story).chain if link.code == "stopped"]
        assert [(link.count, link.until_seq) for link in links] == [(2, None)]

    def test_the_chain_stays_bounded_whatever_happens(self) -> None:
        story = agent_zero_stopped()
        size = len(encode_state(story.state))
        for index in range(300):
            empty_summary(story.turn(f"x{index}"), 140_261 + index)
            story.empty(100_000).ends("error", f"x{index}")
        assert len(open_view(story).chain) < 30
        assert len(encode_state(story.state)) < 1.6 * size + 2_000


class TestTheCausalOrder:
    def test_every_effect_is_a_cause_of_its_own_row(self) -> None:
        assert {code for codes in LEADS_TO.values() for code in codes} <= set(LEADS_TO)

    def test_causes_stand_above_their_effects(self) -> None:
        above = [
            (cause, effect)
            for cause, effects in LEADS_TO.items()
            for effect in effects
            if RANK[effect] < RANK[cause]
        ]
        assert above == []

    def test_nothing_leads_to_itself(self) -> None:
        assert [code for code, effects in EFFECTS.items() if code in effects] == []

    @pytest.mark.parametrize("code", LEADS_TO)
    def test_every_cause_has_a_name(self, code: str) -> None:
        assert "_" not in say_root(code)
        assert say_cause(Cause(finding=code, agent="zero")).endswith("in chats of zero")


class TestFigures:
    def test_the_tokens_of_failed_summaries_are_burnt_from_the_first_evidence_on(self) -> None:
        view = open_view(agent_zero_stopped())
        assert (view.burnt_tokens, view.burnt_unknown_calls) == (29_100, 0)
        assert view.unusable == 5

    def test_calls_whose_usage_nobody_told_are_counted_and_no_zero_is_said(self) -> None:
        story = agent_zero().turn().message(100)
        for _ in range(3):
            story.compacts(140_261, 140_261, scope="history", reported="error",
                           summarizer={"model": "m", "calls": 2, "error": "quota"})  # fmt: skip
        view = open_view(story)
        assert (view.burnt_tokens, view.burnt_unknown_calls) == (None, 6)

    def test_a_pass_without_a_call_burns_nothing(self) -> None:
        view = open_view(maka_blocked())
        assert (view.burnt_tokens, view.burnt_unknown_calls) == (0, 0)

    def test_acting_recovering_and_answering_have_their_times_and_the_command_its_result(
        self,
    ) -> None:
        story = recovered()
        view = open_view(story)
        assert (view.acted_by, view.worst_state) == ("op", "stopped")
        command = view.commands[0]
        assert (command.kind, command.state, command.by) == ("compact_fallback", "succeeded", "op")
        assert (command.before, command.after) == (140_261, 60_000)
        assert view.acted_at == command.at
        assert view.recovered_at is not None and view.answered_at is not None
        assert command.at < view.recovered_at <= story.at
        assert [link.code for link in view.chain if link.kind == "command"] == ["compact_fallback"]

    def test_a_ping_is_no_act(self) -> None:
        story = agent_zero_stopped().command("ping", command="p1")
        assert open_view(story).acted_at is None
        assert open_view(story).commands == ()


class TestClosing:
    def test_it_stays_open_while_it_recovers_without_an_answer(self) -> None:
        story = agent_zero_stopped().command("compact_fallback")
        story.say("command.progress", command="cmd1", state="succeeded")
        assert story.is_ == "recovering"
        assert open_view(story).recovered_at is None

    def test_three_calm_requests_close_it_and_two_do_not(self) -> None:
        story = recovered()
        story.turn("t3").reply(71_000).reply(71_500)
        assert story.row.incident is not None
        story.reply(72_000)
        assert story.row.incident is None
        (view,) = closed_views(story)
        assert view.closed_how == "requests"
        assert (view.closed_seq, view.closed_at) == (story.seq, story.at)

    def test_ten_calm_minutes_close_it_by_a_tick(self) -> None:
        story = recovered()
        calm = open_view(story).recovered_at
        assert calm is not None
        story.tick_when_due()
        assert story.at == calm + 10 * MINUTE
        (view,) = closed_views(story)
        assert (view.closed_how, view.closed_at) == ("time", calm + 10 * MINUTE)
        assert view.answered_at == calm

    def test_an_event_after_ten_calm_minutes_closes_it_as_of_then(self) -> None:
        story = recovered()
        calm = open_view(story).recovered_at
        assert calm is not None
        story.wait(60 * MINUTE).turn("t3")
        assert [view.closed_at for view in closed_views(story)] == [calm + 10 * MINUTE]

    def test_trouble_after_that_is_another_incident(self) -> None:
        story = recovered()
        story.wait(60 * MINUTE).turn("t3").say("agent.stopped", reason="again", count=5)
        assert len(closed_views(story)) == 1
        assert story.row.incident == story.seq

    def test_trouble_before_that_is_the_same_incident(self) -> None:
        story = recovered()
        opened = story.row.incident
        story.wait(9 * MINUTE).turn("t3").say("agent.stopped", reason="again", count=5)
        assert story.row.incident == opened
        assert open_view(story).recovered_at is None

    def test_a_warning_that_belongs_to_it_keeps_it_open(self) -> None:
        story = empty_summary(agent_zero().turn().message(100), 140_261)
        story.say("agent.stopped", reason="limit", count=5).turn("t2").ends(turn="t2")
        assert (story.is_, story.row.severity) == ("stalled", "warning")
        story.wait(60 * MINUTE).tick()
        assert open_view(story).recovered_at is None

    def test_a_warning_that_causes_nothing_does_not(self) -> None:
        story = Story().opened().turn().say("agent.stopped", reason="limit", count=5)
        story.connected(skew_ms=90_000).turn("t2").reply(20_000).ends(turn="t2")
        assert (story.is_, story.row.severity) == ("degraded", "warning")
        calm = open_view(story).recovered_at
        story.tick_when_due()
        assert [view.recovered_at for view in closed_views(story)] == [calm]

    def test_a_chat_that_is_closed_ends_its_incident(self) -> None:
        story = agent_zero_stopped().say("chat.closed", reason="done")
        assert [view.closed_how for view in closed_views(story)] == ["ended"]
        assert story.tick().row.incident is None

    def test_a_transcript_that_nobody_writes_any_more_ends_with_its_last_event(self) -> None:
        story = Story(read_only=True).opened().turn()
        story.say("agent.stopped", reason="limit", count=5)
        last = story.at
        assert story.row.incident is not None
        while story.row.incident is not None:
            story.tick_when_due()
        assert story.at == last + 60 * MINUTE + 1
        (view,) = closed_views(story)
        assert (view.closed_how, view.closed_at) == ("ended", last)

    def test_an_old_transcript_ends_as_soon_as_it_is_imported(self) -> None:
        story = Story(read_only=True).opened().turn()
        story.say("agent.stopped", reason="limit", count=5)
        story.wait(100 * 24 * 60 * MINUTE).disconnected()
        assert [view.closed_how for view in closed_views(story)] == ["ended"]
        assert story.row.incident is None


class TestCauses:
    def test_the_cause_of_a_dead_summarizer_names_model_provider_and_error(self) -> None:
        view = open_view(agent_zero_stopped())
        assert view.cause == Cause(
            finding="summarizer_failing",
            summarizer_model="glm-flash",
            provider="zai",
            error_class="empty",
        )
        assert view.cause.key == "summarizer_failing/glm-flash/zai/empty"
        assert say_cause(view.cause) == "The utility model glm-flash (zai) answers nothing"

    def test_what_lies_in_the_chat_is_grouped_within_its_agent(self) -> None:
        story = maka_blocked()
        assert story.row.cause == "agent/latch_structural///"
        cause = Cause(finding="latch_structural", agent="maka/1")
        assert cause.key == "agent/latch_structural////maka%2F1"

    def test_turns_that_fail_at_the_provider_name_it(self) -> None:
        story = Story().opened(provider="acme")
        for index in range(2):
            story.turn(f"t{index}").fails("auth", status=401).ends("error", f"t{index}", "401")
        view = open_view(story)
        assert (view.root, view.cause.provider, view.cause.error_class) == (
            "turns_failing", "acme", "auth",
        )  # fmt: skip
        assert say_cause(view.cause) == "Every turn fails: acme refuses the credentials"

    def test_names_with_slashes_make_no_other_cause(self) -> None:
        one = Cause(finding="f", summarizer_model="a/b", provider="c", error_class="quota")
        two = Cause(finding="f", summarizer_model="a", provider="b/c", error_class="quota")
        assert one.key != two.key


class TestARestartOfTheServer:
    def waiting(self) -> Story:
        return Story().opened().turn().reply(20_000)

    def away(self, story: Story, *, restart: bool) -> Story:
        return story.put(ServerDisconnected(seq=1, ts=0, conn_no=1, reason="gone", restart=restart))

    def test_agents_get_90_seconds_to_come_back_and_not_45(self) -> None:
        story = self.away(self.waiting(), restart=True)
        gone = story.at
        story.put_tick_at(gone + 46 * SECOND)
        assert story.severity("agent_offline") is None
        story.tick_when_due()
        assert story.at == gone + 90 * SECOND
        assert story.severity("agent_offline") == "warning"

    def test_without_a_restart_it_is_45(self) -> None:
        story = self.away(self.waiting(), restart=False)
        gone = story.at
        story.tick_when_due()
        assert (story.at, story.severity("agent_offline")) == (gone + 45 * SECOND, "warning")

    def test_a_user_who_waited_through_it_is_not_unanswered_before_the_agent_is_back(self) -> None:
        story = self.waiting().wait(11 * MINUTE)
        self.away(story, restart=True)
        story.put_tick_at(story.at + SECOND)
        assert story.is_ != "stopped" and story.row.incident is None
        story.connected(epoch="e1")
        assert story.severity("unanswered") is None
        back = story.at
        story.tick_when_due()
        assert (story.at, story.severity("unanswered")) == (back + 45 * SECOND, "critical")

    def test_the_next_disconnect_is_an_ordinary_one(self) -> None:
        story = self.away(self.waiting(), restart=True).connected()
        self.away(story, restart=False)
        gone = story.at
        story.tick_when_due()
        assert story.at == gone + 45 * SECOND
