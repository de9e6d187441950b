"""Window, reserve, budget and trigger: who says so."""

from __future__ import annotations

import pytest

from ctxhealth.core.limits import budget_of, default_reserve
from ctxhealth.core.rules import Rules, Thresholds, WindowOverride
from ctxhealth.core.windows import table_window

from .story import Story


@pytest.mark.parametrize(
    ("model", "window", "max_input"),
    [
        ("claude-sonnet-4-5", 200_000, None),
        ("claude-sonnet-4-5-20250929", 200_000, None),
        ("claude-fable-5[1m]", 1_000_000, None),
        ("claude-nobody-9[1m]", 1_000_000, None),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, None),
        ("global.anthropic.claude-opus-4-6-20990101-v1:0", 1_000_000, None),
        ("claude-opus-4-5@20251101", 200_000, None),
        ("somebody/gpt-5", 400_000, 272_000),
        ("gpt-5:free", 400_000, 272_000),
        ("gpt-5-2025-08-07", 400_000, 272_000),
    ],
)
def test_the_table_knows_aliases(model: str, window: int, max_input: int | None) -> None:
    found = table_window(model)
    assert found is not None
    assert (found.window, found.max_input) == (window, max_input)


def test_an_unknown_model_has_no_window_and_no_percentage() -> None:
    assert table_window("nobody-knows-this") is None
    story = Story().say("chat.opened", model="nobody-knows-this").reply(9_000)
    assert story.row.window.value is None
    assert story.row.budget is None
    assert story.codes() == {"window_unknown"}


@pytest.mark.parametrize(
    ("window", "reserve", "budget"),
    [(196_608, 4_096, 192_512), (32_768, 1_638, 31_130), (1_000, 50, 950), (10, 1, 9)],
)
def test_the_assumed_reserve(window: int, reserve: int, budget: int) -> None:
    assert default_reserve(window, Thresholds()) == reserve
    assert budget_of(window, reserve, None) == budget


def test_a_reserve_above_the_window_gives_a_budget_of_0_and_a_finding() -> None:
    story = Story().opened(window=16_384, reserve=32_000).reply(3_000)
    assert story.row.budget == 0
    assert story.severity("reserve_exceeds_window") == "critical"
    assert story.is_ == "cannot_fit"


def test_the_budget_is_the_max_input_where_that_is_less() -> None:
    story = Story().say("chat.opened", model="gpt-5")
    assert story.row.window.value == 400_000
    assert story.row.budget == 272_000


def test_candidates_stand_side_by_side_and_the_operator_s_word_counts() -> None:
    rules = Rules(overrides=(WindowOverride(model="gpt-5", window=300_000, by="ann"),))
    story = Story(rules=rules).say("chat.opened", model="gpt-5", window=258_400)
    window = story.row.window
    assert (window.value, window.source) == (300_000, "operator")
    assert [(c.source.value, c.value) for c in window.candidates] == [
        ("operator", 300_000),
        ("agent", 258_400),
        ("table", 400_000),
    ]


def test_a_first_request_above_a_wrong_window_moves_to_the_larger_candidate() -> None:
    story = Story().say("chat.opened", model="gpt-5.5", window=2_432).reply(25_000)
    assert story.row.window.source == "evidence"
    assert story.row.window.value == 1_050_000
    assert "over_window" not in story.codes()
    assert story.severity("window_conflict") == "warning"


def test_growth_past_the_window_that_is_explained_proves_a_larger_one() -> None:
    story = Story().opened(window=200_000).reply(198_000)
    story.message(20_000).reply(219_313)
    window = story.row.window
    assert (window.value, window.at_least, window.source) == (219_313, True, "evidence")


def test_a_request_above_the_window_that_nothing_explains_is_a_wrong_meter() -> None:
    story = Story().opened(window=200_000).reply(30_000)
    story.message(500).reply(480_000)
    assert story.row.window.value == 200_000
    assert story.codes() == {"meter_unreliable"}
    assert not story.row.load.reliable


def test_an_overflow_that_states_its_limit_is_evidence() -> None:
    story = Story().opened(window=1_000_000).reply(900_000)
    story.fails("overflow", stated_window=940_000, stated_prompt=941_200)
    assert (story.row.window.value, story.row.window.source) == (940_000, "evidence")
    assert (story.row.load.value, story.row.load.source) == (941_200, "error")


def test_an_output_cap_on_the_request_is_part_of_the_reserve() -> None:
    story = Story().opened(window=131_072).reply(90_000, sent={"max_output": 32_000})
    assert story.row.budget == 99_072


def test_the_cap_drops_out_once_a_request_above_that_budget_is_answered() -> None:
    story = Story().opened(window=131_072).reply(100_000, sent={"max_output": 32_000})
    assert story.row.budget == 131_072 - 4_096
    story.reply(100_500, sent={"max_output": 32_000})
    assert story.row.budget == 131_072 - 4_096
    assert story.codes() == {"near_trigger"}


def test_another_model_forgets_what_was_learned_about_the_old_one() -> None:
    story = Story().opened(window=200_000).reply(198_000, local=99_000)
    story.message(20_000).reply(219_313)
    story.say("chat.updated", model="gpt-5")
    assert story.row.calibration is None
    assert (story.row.window.value, story.row.window.source) == (400_000, "table")


class TestTrigger:
    def test_a_declared_ratio_is_of_the_window(self) -> None:
        story = Story().opened(trigger={"ratio": 0.9, "inclusive": True})
        trigger = story.row.trigger
        assert (trigger.value, trigger.inclusive, trigger.source) == (180_000, True, "declared")

    @pytest.mark.parametrize(
        "facts", [{"trigger": {"tokens": 0}}, {"trigger": {"ratio": 0}}, {"history_limit": 0}]
    )
    def test_a_trigger_of_nothing_is_one_that_is_off(self, facts: dict[str, object]) -> None:
        story = Story().opened(**facts)
        for prompt in (9_000, 9_100, 9_200, 9_300):
            story.turn().reply(prompt).ends()
        assert story.row.trigger.source == "assumed"
        assert story.codes() == set()

    def test_a_history_limit_is_a_trigger_of_the_history_and_drawn_after_the_fixed_part(
        self,
    ) -> None:
        story = Story().opened(history_limit=140_000, system=6_000, tools=3_000)
        trigger = story.row.trigger
        assert (trigger.value, trigger.scope, trigger.on_strip) == (140_000, "history", 149_000)

    def test_like_is_compared_with_like(self) -> None:
        story = Story().opened(history_limit=140_000, system=6_000, tools=3_000)
        story.say("history.snapshot", revision="r", history=120_000).reply(145_000)
        assert story.row.headroom.trigger == 20_000
        assert "over_trigger" not in story.codes()

    def test_none_declared_is_assumed_at_80_percent(self) -> None:
        trigger = Story().opened().row.trigger
        assert (trigger.value, trigger.source) == (160_000, "assumed")

    def test_the_last_three_automatic_compactions_teach_it_by_their_smallest_before(self) -> None:
        story = Story().opened()
        for before in (100_000, 170_000, 167_000, 168_000):
            story.reply(before).compacts(before, 40_000).reply(40_500)
        trigger = story.row.trigger
        assert (trigger.value, trigger.source) == (167_000, "learned")

    def test_a_manual_compaction_teaches_nothing(self) -> None:
        story = Story().opened().reply(60_000)
        story.compacts(60_000, 20_000, trigger="manual").reply(20_500)
        assert story.row.trigger.source == "assumed"

    def test_a_trigger_met_exactly_is_not_crossed_by_an_agent_that_compacts_above_it(self) -> None:
        for inclusive, above in ((False, 0), (True, 1)):
            story = Story().opened(trigger={"tokens": 150_000, "inclusive": inclusive})
            story.reply(150_000)
            assert story.state.requests.above == above
