"""What is shown: rows, pages, headlines, words; and that each is defined once and completely."""

from __future__ import annotations

import msgspec
import pytest

from ctxhealth.core.findings.catalogue import CATALOGUE, DEFINITIONS
from ctxhealth.core.headline import headline
from ctxhealth.core.model import Connection, Outcome, Relief, Severity, Source, State
from ctxhealth.core.states import (
    COMMAND_STATE_META,
    CONNECTION_META,
    OUTCOME_META,
    RELIEF_META,
    SEVERITY_META,
    SOURCE_META,
    STATE_META,
    meta_of,
)
from ctxhealth.core.structure import structure_from_snapshot
from ctxhealth.core.view import detail, summary
from ctxhealth.core.wording import clock, duration, number, plural
from ctxhealth.wire.events import HistorySnapshot

from .story import COMMANDS, MINUTE, Story, wire_event


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        (STATE_META, State),
        (SEVERITY_META, Severity),
        (OUTCOME_META, Outcome),
        (RELIEF_META, Relief),
        (CONNECTION_META, Connection),
        (SOURCE_META, Source),
    ],
)
def test_every_word_has_one_label_icon_and_tone(meta: dict[str, object], words: type) -> None:
    assert list(meta) == list(words)  # type: ignore[call-overload]


def test_every_state_of_a_command_has_a_label() -> None:
    assert {"queued", "waiting", "refused", "unknown"} <= set(COMMAND_STATE_META)
    assert len(COMMAND_STATE_META) == 11


def test_no_two_states_look_alike() -> None:
    assert len({(meta.icon, meta.label) for meta in STATE_META.values()}) == len(STATE_META)
    assert len({meta.icon for meta in STATE_META.values()}) == len(STATE_META)


class TestCatalogue:
    def test_each_code_is_defined_once(self) -> None:
        assert len(CATALOGUE) == len(DEFINITIONS)

    def test_each_tells_a_person_what_it_is(self) -> None:
        for definition in DEFINITIONS:
            assert definition.doc.endswith(".") and definition.title and definition.severity

    def test_each_action_is_a_command_or_a_written_step(self) -> None:
        for definition in DEFINITIONS:
            assert set(definition.actions) <= {*COMMANDS, "manual"}


class TestHeadline:
    def test_a_healthy_chat_says_its_load(self) -> None:
        assert Story().opened().reply(49_000).page.headline == (
            "Healthy: 49,000 of 195,904 usable tokens, 25%."
        )

    def test_before_the_first_request_nothing_is_claimed(self) -> None:
        assert Story().opened().page.headline == "Healthy: no request has been counted yet."

    def test_without_a_window_there_is_no_percentage(self) -> None:
        text = Story().say("chat.opened", model="x-unknown").reply(9_000).page.headline
        assert "%" not in text.replace("percentage", "")

    def test_with_the_time_it_says_how_long_the_user_has_waited(self) -> None:
        story = Story().opened().turn().say("agent.stopped", reason="limit").ends("stopped")
        since = story.row.waiting_since
        assert since is not None
        assert "the user has waited 12 min" in headline(story.state, since + 12 * MINUTE).text
        assert "the user has waited since 00:00 UTC" in headline(story.state).text

    def test_the_action_is_one_that_the_agent_can_do(self) -> None:
        story = Story(live=False).put(
            msgspec.structs.replace(_connected(), commands=["compact_summarize"])
        )
        story.opened(trigger={"tokens": 150_000})
        for index in range(3):
            story.reply(160_000 + index)
        advice = story.page.headline_advice
        assert advice is not None and advice.action == "compact_summarize"
        offers = [offer.action for offer in story.finding("overdue").recommended]
        assert offers == ["compact_summarize"]

    def test_a_symptom_s_headline_names_the_cause_first(self) -> None:
        story = Story().opened(window=196_608).turn().reply(100_000, local=60_000)
        story.empty(196_602, local=117_961)
        text = story.page.headline
        assert text.index("counts only 0.60") < text.index("empty reply")

    def test_it_is_one_sentence_and_the_action(self) -> None:
        story = Story().opened().reply(150_000).fails("overflow")
        assert story.page.headline == (
            "Over: the provider refused the request: the context is too large. "
            "Force a fallback compaction, which calls no model."
        )


def _connected() -> object:
    from ctxhealth.wire.events import ServerConnected

    return ServerConnected(seq=1, ts=0, conn_no=1)


class TestState:
    def test_the_first_row_with_a_critical_finding_names_it(self) -> None:
        story = Story().opened().turn().reply(150_000).fails("overflow")
        assert story.is_ == "over"
        story.say("agent.stopped", reason="limit")
        assert story.is_ == "stopped"
        assert story.row.severity == "critical"

    def test_a_critical_row_below_goes_before_a_warning_above(self) -> None:
        story = Story().opened(reserve=0).turn().empty(60_000)
        assert story.is_ == "silent"
        story.fails("overflow")
        assert (story.severity("silent_empty"), story.is_) == ("warning", "over")

    def test_since_moves_when_the_word_changes_and_not_with_every_event(self) -> None:
        story = Story().opened().reply(144_000)
        since = story.row.since
        assert since == story.at
        story.reply(145_000)
        assert story.row.since == since

    def test_a_state_with_nothing_critical_is_not_shown_in_its_tone(self) -> None:
        assert meta_of(State.STALLED, Severity.WARNING).tone == "warning"
        assert meta_of(State.STALLED, Severity.CRITICAL).tone == "critical"
        assert meta_of(State.RECOVERING, Severity.WARNING).tone == "active"
        assert meta_of(State.HEALTHY, None).tone == "good"

    def test_infos_alone_are_watch(self) -> None:
        row = Story().opened().reply(150_000).row
        assert (row.state, row.severity) == ("watch", "info")


class TestRecovering:
    def over(self) -> Story:
        return Story().opened(reserve=9_000).turn().reply(199_000)

    def recovering(self, kind: str = "compact_fallback") -> Story:
        story = self.over().command(kind)
        story.compacts(199_000, 90_000, trigger="forced", lossy=True)
        return story.say("command.progress", command="cmd1", state="succeeded")

    def test_old_findings_do_not_count_and_new_ones_do(self) -> None:
        story = self.recovering()
        assert story.is_ == "recovering"
        story.fails("overflow")
        assert story.is_ == "over"

    def test_it_says_what_it_waits_for(self) -> None:
        text = self.recovering().page.headline
        assert text == (
            "Recovering: compact fallback succeeded; waiting for the next request's count and "
            "the answer to the waiting user."
        )

    def test_a_reading_that_is_still_over_ends_it(self) -> None:
        story = self.recovering().reply(198_000)
        assert story.is_ == "stalled"
        assert story.severity("over_budget") == "critical"

    def test_a_reply_to_a_request_sent_before_the_success_decides_nothing(self) -> None:
        story = self.over().command("compact_fallback")
        in_flight = story.ask()
        story.compacts(199_000, 90_000, trigger="forced", lossy=True)
        story.say("command.progress", command="cmd1", state="succeeded")
        story.reply(199_100, request=in_flight)
        assert story.is_ == "recovering"
        story.reply(90_400).ends()
        assert story.is_ == "healthy"

    def faster_than_its_receipt(self, prompt: int, kind: str = "compact_fallback") -> Story:
        """The loop goes on after the compaction and is answered before the receipt arrives."""
        story = self.over().command(kind)
        story.compacts(199_000, 90_000, trigger="forced", lossy=True)
        story.reply(prompt)
        return story

    def test_an_answer_before_the_receipt_decides_with_it(self) -> None:
        for kind in ("compact_fallback", "clear_latch", "compact_summarize"):
            story = self.faster_than_its_receipt(90_400, kind).ends()
            story.say("command.progress", command="cmd1", state="succeeded")
            assert (kind, story.is_, story.state.recovery) == (kind, "healthy", None)

    def test_a_reading_before_the_receipt_leaves_only_the_answer_to_wait_for(self) -> None:
        story = self.faster_than_its_receipt(90_400)
        story.say("command.progress", command="cmd1", state="succeeded")
        assert story.page.headline == (
            "Recovering: compact fallback succeeded; waiting for the answer to the waiting user."
        )
        assert story.ends().is_ == "healthy"

    def test_a_reading_before_the_receipt_that_is_still_over_is_no_recovery(self) -> None:
        story = self.faster_than_its_receipt(198_000).ends()
        story.say("command.progress", command="cmd1", state="succeeded")
        assert (story.is_, story.row.severity) == ("stalled", "critical")

    def test_a_reading_from_before_the_command_decides_nothing(self) -> None:
        story = Story().opened(reserve=9_000).turn().reply(199_000)
        story.compacts(199_000, 150_000).reply(194_000).ends()
        story.command("compact_fallback")
        story.say("command.progress", command="cmd1", state="succeeded")
        assert story.is_ == "recovering"

    def test_a_latch_cleared_while_the_load_is_fine_needs_no_compaction(self) -> None:
        story = Story().opened().turn().reply(60_000).ends()
        story.say("latch.set", latch="l1", scope="chat", kind="structural")
        assert story.severity("latched_unjustified") == "warning"
        story.command("clear_latch").say("latch.cleared", latch="l1", how="operator")
        story.say("command.progress", command="cmd1", state="succeeded")
        assert (story.is_, story.state.recovery) == ("healthy", None)

    def test_a_latch_cleared_above_the_budget_waits_for_the_next_reading(self) -> None:
        story = self.over()
        story.say("latch.set", latch="l1", scope="chat", kind="structural")
        story.command("clear_latch").say("latch.cleared", latch="l1", how="operator")
        story.say("command.progress", command="cmd1", state="succeeded")
        assert story.is_ == "recovering"
        story.compacts(199_000, 90_000).reply(90_400).ends()
        assert story.is_ == "healthy"

    def test_a_ping_that_succeeds_recovers_nothing(self) -> None:
        story = self.over().command("ping")
        story.say("command.progress", command="cmd1", state="succeeded")
        assert story.is_ == "over"

    def test_a_command_that_is_refused_recovers_nothing(self) -> None:
        story = self.over().command("clear_latch")
        story.say("command.progress", command="cmd1", state="refused", reason="stale")
        assert story.is_ == "over"

    def test_a_result_that_comes_twice_counts_once(self) -> None:
        story = self.recovering().reply(90_500).ends()
        assert story.is_ == "healthy"
        story.say("command.progress", command="cmd1", state="succeeded")
        assert story.is_ == "healthy"
        assert "came after" in story.changes.oddities[-1]

    def test_its_steps_are_told_to_the_store(self) -> None:
        steps = [(c.kind, c.state) for c in self.recovering().changes.commands]
        assert steps == [("compact_fallback", "queued"), ("compact_fallback", "succeeded")]


class TestStructure:
    def test_the_parts_of_a_snapshot_become_one_structure(self) -> None:
        parts = [
            wire_event("history.snapshot", revision="r", part=1, parts=2, system=5, bulks=[
                {"id": "b1", "tokens": 10, "records": 3}]),
            wire_event("history.snapshot", revision="r", part=2, parts=2, topics=[
                {"id": "t1", "tokens": 7, "messages": 2, "title": "One"}],
                current={"tokens": 4, "messages": 1}),
        ]  # fmt: skip
        assert all(isinstance(part, HistorySnapshot) for part in parts)
        found = structure_from_snapshot(parts, 9)  # type: ignore[arg-type]
        assert [(b.kind, b.id, b.tokens) for b in found.blocks] == [
            ("system", "system", 5), ("bulk", "b1", 10), ("topic", "t1", 7),
            ("current", "current", 4),
        ]  # fmt: skip
        assert (found.source, found.at_seq) == ("snapshot", 9)

    def test_no_snapshot_is_unknown(self) -> None:
        assert structure_from_snapshot([]).source == "unknown"

    def test_without_one_the_items_tell(self) -> None:
        structure = Story().opened(system=500).message(100).page.structure
        assert structure.source == "items"
        assert [(b.kind, b.tokens) for b in structure.blocks] == [("system", 500), ("current", 100)]

    def test_a_snapshot_in_parts_adds_up(self) -> None:
        story = Story().opened()
        for part in (1, 2):
            story.say(
                "history.snapshot", revision="r", part=part, parts=2,
                topics=[{"id": f"t{part}", "tokens": 1_000}],
            )  # fmt: skip
        assert story.row.history.value == 2_000


def test_both_views_are_json() -> None:
    story = Story().opened().turn().message(50).reply(150_000).fails("overflow")
    for view in (
        summary(story.state, story.rules),
        detail(story.state, story.rules, None),
    ):
        text = msgspec.json.encode(view)
        assert msgspec.json.decode(text, type=type(view)) == view


def test_findings_are_upserted_by_code_and_start() -> None:
    story = Story().opened().reply(150_000).fails("overflow")
    opened = story.changes.findings_opened
    assert set(opened) == {"near_trigger", "over_window"}
    story.reply(50_000)
    rows = story.changes.findings
    assert {(code, view.closed_seq is not None) for (code, _), view in rows.items()} == {
        ("near_trigger", True),
        ("over_window", True),
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (number(140_261), "140,261"),
        (number(None), "?"),
        (plural(1, "reply", "replies"), "1 reply"),
        (plural(1_200, "reply", "replies"), "1,200 replies"),
        (duration(45_000), "45 s"),
        (duration(12 * MINUTE), "12 min"),
        (duration(200 * MINUTE), "3 h 20 min"),
        (duration(3 * 24 * 60 * MINUTE), "3 days"),
        (clock(14 * 60 * MINUTE + 2 * MINUTE), "14:02 UTC"),
    ],
)
def test_numbers_and_times_read_well(given: str, expected: str) -> None:
    assert given == expected
