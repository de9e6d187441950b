"""A trigger learned from samples: what counts as relief below it."""

from __future__ import annotations

import pytest

from .story import Story


def learned() -> Story:
    """Two compactions at about 155,000 that helped: the trigger is 154,500."""
    story = Story().opened(window=200_000)
    for turn, before in enumerate((155_000, 154_500)):
        story.turn(f"t{turn}").reply(before)
        story.compacts(before, 50_000).reply(50_500).ends(turn=f"t{turn}")
    assert (story.row.trigger.value, story.row.trigger.source) == (154_500, "learned")
    return story


@pytest.mark.parametrize(
    ("after", "relief"),
    [(154_400, "not_relieved"), (148_000, "not_relieved"), (146_000, "relieved")],
)
def test_just_below_a_learned_trigger_is_no_relief(after: int, relief: str) -> None:
    story = learned().turn("x").reply(155_200)
    story.compacts(155_200, None, attempt="last").reply(after)
    assert story.changes.attempts["last"].relief == relief


def test_below_a_declared_trigger_is_relief_however_little() -> None:
    story = Story().opened(window=200_000, trigger={"tokens": 154_500}).turn().reply(155_200)
    story.compacts(155_200, None, attempt="last").reply(154_400)
    assert story.changes.attempts["last"].relief == "relieved"


def test_a_compaction_far_from_the_earlier_ones_is_where_the_agent_starts_from_then_on() -> None:
    story = Story().opened(window=200_000).turn()
    story.reply(40_800).compacts(40_800, 20_000, trigger="proactive")
    for load in (50_000, 60_000, 80_000, 100_000, 112_000):
        story.reply(load)
    assert story.codes().isdisjoint({"latched", "latched_unjustified", "stalled"})
    story.compacts(114_000, 20_000, trigger="proactive").reply(24_000).reply(30_000)
    assert story.state.limits.learned == [114_000]
    assert story.codes().isdisjoint({"latched", "stalled"})


def test_compactions_that_start_alike_are_all_kept() -> None:
    story = Story().opened(window=200_000).turn()
    for before in (150_000, 120_000, 170_000):
        story.reply(before).compacts(before, 30_000, trigger="proactive").reply(31_000)
    assert story.state.limits.learned == [150_000, 120_000, 170_000]


def test_a_compaction_that_freed_next_to_nothing_shows_no_trigger() -> None:
    story = Story().opened(window=200_000).turn()
    story.reply(20_800).compacts(20_800, 20_000, trigger="proactive")
    for load in (40_000, 60_000, 80_000, 100_000, 112_000):
        story.reply(load)
    story.compacts(114_000, 20_000, trigger="proactive").reply(24_000).reply(30_000)
    assert story.state.limits.learned == [114_000]
    assert story.codes().isdisjoint({"latched", "stalled"})
