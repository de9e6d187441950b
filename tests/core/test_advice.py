"""What is recommended can be done: by the chat's agent, or by hand where there is no button."""

from __future__ import annotations

import pytest

from ctxhealth.core.advice import by_hand
from ctxhealth.core.findings.catalogue import DEFINITIONS
from ctxhealth.core.model import Advice

from .story import COMMANDS, Story

CLAUDE = {"labels": {"runtime": "claude-code"}}
COMPACT = "Run /compact in the session, or start a new one from its summary"
AGAIN = "; then send the unanswered message again."


def offering(*commands: str) -> Story:
    """A live agent that can do these."""
    return Story(live=False).connected(commands=commands).opened(reserve=9_000)


def texts(story: Story, code: str) -> list[str]:
    return [offer.text for offer in story.finding(code).recommended]


def pairs(offers: tuple[Advice, ...]) -> list[tuple[str, str]]:
    return [(offer.action, offer.text) for offer in offers]


def failed_summaries(story: Story, count: int, load: int = 186_000) -> Story:
    for _ in range(count):
        summarizer = {"calls": 1, "error": "provider"}
        story.compacts(load, load, reported="failed", summarizer=summarizer)
    return story


class TestReadOnly:
    def over(self) -> Story:
        return Story(read_only=True).opened(**CLAUDE).reply(170_000).turn().fails("overflow")

    def test_the_step_is_one_of_the_sessions_own(self) -> None:
        story = self.over()
        assert pairs(story.finding("over_window").recommended) == [("manual", COMPACT + AGAIN)]

    def test_the_headline_names_the_step_and_no_button(self) -> None:
        page = self.over().page
        assert page.headline.endswith(f". {COMPACT}{AGAIN}")
        assert page.headline_advice is not None
        assert (page.headline_advice.action, page.headline_advice.available) == ("manual", True)

    def test_where_the_summarizer_fails_it_does_not_send_there(self) -> None:
        story = failed_summaries(Story(read_only=True).opened(**CLAUDE).reply(186_000), 2)
        (text,) = texts(story, "summarizer_failing")
        assert text.startswith("Start a new session")

    def test_of_an_unknown_runtime_it_is_a_general_one(self) -> None:
        story = Story(read_only=True).opened().reply(150_000).fails("overflow")
        (text,) = texts(story, "over_window")
        assert text.startswith("Compact or shorten the history in the agent itself")

    def test_nobody_is_warned_of_buttons_that_are_not_there(self) -> None:
        assert self.over().finding("over_window").discouraged == ()

    def test_the_same_holds_before_any_connection(self) -> None:
        story = Story(live=False).opened(**CLAUDE).reply(150_000).fails("overflow")
        assert story.row.connection == "imported"
        assert texts(story, "over_window") == [f"{COMPACT}."]

    def test_an_unanswered_message_is_sent_again_once(self) -> None:
        story = self.over().say("agent.stopped", reason="limit")
        assert texts(story, "stopped") == [COMPACT + AGAIN]

    def test_every_recommended_command_has_its_step_by_hand(self) -> None:
        for labels in ({}, CLAUDE):
            state = Story(read_only=True).opened(**labels).state
            for action in {action for found in DEFINITIONS for action in found.actions}:
                if action != "manual":
                    assert by_hand(state, action).text.endswith(".")


class TestAnAgentWithoutTheFallback:
    def test_that_can_compact_is_told_to(self) -> None:
        story = offering("compact_summarize").reply(150_000).fails("overflow")
        assert pairs(story.finding("over_window").recommended) == [
            ("compact_summarize", "Let the agent compact now.")
        ]

    def test_that_is_blocked_by_a_latch_without_reason_is_told_to_clear_it(self) -> None:
        story = offering("clear_latch", "compact_summarize").turn().reply(150_000)
        story.say("latch.set", latch="l1", scope="chat", kind="structural").fails("overflow")
        for code in ("over_window", "latched_unjustified"):
            (offer,) = story.finding(code).recommended
            assert (offer.action, offer.args["latch"]) == ("clear_latch", "l1")
        advice = story.page.headline_advice
        assert advice is not None and advice.action == "clear_latch"

    def test_whose_summarizer_fails_gets_a_step_by_hand(self) -> None:
        story = failed_summaries(offering("clear_latch", "compact_summarize").reply(186_000), 2)
        (offer,) = story.finding("summarizer_failing").recommended
        assert offer.action == "manual"
        assert "the summarizer that fails" in offer.text

    def test_that_offers_nothing_gets_a_step_by_hand(self) -> None:
        story = offering("ping").reply(150_000).fails("overflow")
        advice = story.page.headline_advice
        assert advice is not None and advice.action == "manual"
        assert "Force" not in story.page.headline

    def test_a_latch_that_cannot_be_cleared_from_here_is_fallen_back_over(self) -> None:
        story = offering("compact_fallback").reply(150_000)
        story.say("latch.set", latch="l1", scope="chat", kind="structural")
        (offer,) = story.page.latches[0].recommended
        assert offer.action == "compact_fallback"


class TestConnections:
    def stuck(self) -> Story:
        return Story().opened(reserve=9_000).turn().reply(150_000).fails("overflow")

    def test_a_command_of_an_agent_that_is_offline_waits_for_it(self) -> None:
        story = self.stuck().disconnected()
        story.tick_when_due()
        assert story.row.connection == "offline"
        (offer,) = story.finding("over_window").recommended
        assert (offer.action, offer.why) == ("compact_fallback", "the agent is offline")
        assert "Once the agent is back: force a fallback" in story.page.headline

    def test_a_latch_is_advised_on_by_what_the_newest_connection_offers(self) -> None:
        story = offering("ping").reply(150_000)
        story.say("latch.set", latch="l1", scope="chat", kind="structural")
        assert story.finding("latched_unjustified").recommended[0].action == "manual"
        story.connected(commands=COMMANDS)
        assert story.finding("latched_unjustified").recommended[0].action == "clear_latch"


class TestInferred:
    def stays(self, count: int) -> Story:
        story = Story(read_only=True).opened(**CLAUDE).turn().reply(170_000).ends()
        for index in range(count):
            load = 170_000 + 400 * index
            story.turn(f"t{index}")
            story.say(
                "compaction.finished", attempt=f"i{index}", trigger="proactive",
                reported="not_recorded", inferred=True, before=load, after=load,
            )  # fmt: skip
            story.reply(load + 405).ends(turn=f"t{index}")
        return story

    def test_the_sentence_and_the_headline_say_that_it_is_inferred(self) -> None:
        story = self.stays(2)
        assert (story.is_, story.row.severity) == ("stalled", "warning")
        for said in (story.page.headline, story.finding("stalled").sentence):
            assert "inferred from a load that stays at 170,000 and more" in said
            assert "the transcript records no attempt" in said

    def test_one_that_is_recorded_beside_them_is_told_apart(self) -> None:
        story = self.stays(1)
        failed_summaries(story, 1, 170_405).reply(170_900)
        said = story.finding("stalled").sentence
        assert said.startswith("2 compactions freed 0") and "1 of them inferred" in said


class TestAskedFor:
    def failed(self, load: int, **fields: str) -> Story:
        story = Story().opened(**fields).turn().reply(load).ends()
        summarizer = {"calls": 1, "error": "provider"}
        story.compacts(load, load, trigger="manual", reported="failed", summarizer=summarizer)
        assert story.severity("summarizer_failing") == "warning"
        return story

    def test_a_failed_command_at_a_low_load_is_past_with_the_next_answer(self) -> None:
        story = self.failed(22_604).turn("t2").reply(23_005)
        assert story.is_ == "stalled"
        assert story.ends(turn="t2").is_ == "healthy"
        assert story.row.outcomes == {"summarizer_failed": 1}

    @pytest.mark.parametrize("load", [165_000, 193_000])
    def test_at_a_high_load_it_stays(self, load: int) -> None:
        story = self.failed(load).turn("t2").reply(load + 400).ends(turn="t2")
        assert story.severity("summarizer_failing") == "warning"

    def test_an_attempt_of_the_agents_own_is_not_forgotten(self) -> None:
        story = Story().opened().turn().reply(60_000).ends()
        failed_summaries(story, 1, 60_000).turn("t2").reply(61_000).ends(turn="t2")
        assert story.severity("summarizer_failing") == "warning"
