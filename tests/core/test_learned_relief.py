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
