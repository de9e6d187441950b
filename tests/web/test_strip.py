"""The window strip: to scale, adding up, and saying what runs past the edge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxhealth.core.model import (
    Block,
    ChatSummary,
    Reading,
    Segment,
    Source,
    TriggerView,
    Window,
)
from ctxhealth.web.strip import WINDOW_SHARE, strip_of
from ctxhealth.web.svg import spark_svg, strip_svg
from tests.web import factories
from tests.web.markup import read


def test_the_pieces_add_up_to_the_load_on_the_scale_of_the_window() -> None:
    summary = factories.agent_zero()
    strip = strip_of(summary)
    drawn = sum(piece.width for piece in strip.pieces)
    assert drawn == pytest.approx(WINDOW_SHARE * 149_761 / 200_000)


def test_each_piece_begins_where_the_one_before_ends() -> None:
    strip = strip_of(factories.agent_zero(), factories.structure().blocks)
    for before, after in zip(strip.pieces, strip.pieces[1:], strict=False):
        assert after.x == pytest.approx(before.x + before.width)


def test_topics_one_by_one_fill_exactly_the_segment_of_all_topics() -> None:
    summary = factories.agent_zero()
    whole, split = strip_of(summary), strip_of(summary, factories.structure(topics=35).blocks)
    topics = [piece for piece in split.pieces if piece.kind == "topics"]
    assert len(topics) == 35
    assert sum(piece.width for piece in topics) == pytest.approx(whole.pieces[2].width)


def test_a_history_trigger_stands_where_the_prompt_would_meet_it() -> None:
    (trigger, budget) = strip_of(factories.agent_zero()).ticks
    assert trigger.x == pytest.approx(WINDOW_SHARE * 149_500 / 200_000)
    assert budget.x == pytest.approx(WINDOW_SHARE * 195_904 / 200_000)


def test_load_beyond_the_window_runs_past_the_edge_and_is_said_in_words() -> None:
    strip = strip_of(factories.healthy(210_000))
    assert strip.beyond
    assert "10,000 beyond the window" in strip.name
    drawn = [e for e in read(strip_svg(strip, "large")).elements
             if e.attributes.get("class") == "s-beyond"]  # fmt: skip
    assert drawn and float((drawn[0].attributes["x"] or "").rstrip("%")) == WINDOW_SHARE


def test_a_window_that_nobody_knows_gives_no_edge_no_reserve_and_no_percentage() -> None:
    strip = strip_of(factories.healthy(5_000, window=Window(), budget=None, reserve=None))
    assert strip.window_x is None
    assert strip.reserve is None
    assert "window unknown" in strip.name


def test_an_unknown_load_is_not_drawn_as_nothing() -> None:
    strip = strip_of(ChatSummary(window=factories.window(200_000)))
    assert strip.load_state == "unknown"
    assert "f-unknown" in strip_svg(strip, "row")


def test_a_pending_load_is_a_skeleton() -> None:
    pending = Reading(value=61_500, source=Source.PENDING)
    strip = strip_of(factories.healthy(61_500, load=pending))
    assert "f-pending" in strip_svg(strip, "row")
    assert all(piece.estimate for piece in strip.pieces)


def test_what_was_added_since_the_reading_follows_the_load() -> None:
    strip = strip_of(factories.healthy(100_000, projection=110_000))
    assert strip.projection is not None
    last = strip.pieces[-1]
    assert strip.projection.x == pytest.approx(last.x + last.width)
    assert strip.projection.width == pytest.approx(WINDOW_SHARE * 10_000 / 200_000)


def test_a_trigger_outside_the_drawing_is_left_out() -> None:
    far = TriggerView(value=900_000, on_strip=900_000)
    assert [tick.kind for tick in strip_of(factories.healthy(trigger=far)).ticks] == ["budget"]


@given(
    st.lists(st.integers(0, 2**53 - 1), max_size=7),
    st.one_of(st.none(), st.integers(1, 2**53 - 1)),
    st.lists(st.one_of(st.none(), st.integers(0, 2**53 - 1)), max_size=300),
)
def test_any_sizes_can_be_drawn(
    sizes: list[int], window: int | None, blocks: list[int | None]
) -> None:
    kinds = ("system", "tools", "extras", "bulks", "topics", "current", "unassigned")
    summary = factories.healthy(
        segments=tuple(Segment(kind=k, tokens=t) for k, t in zip(kinds, sizes, strict=False)),
        window=Window(value=window),
        budget=window,
        load=Reading(value=sum(sizes), source=Source.PROVIDER),
    )
    listed = tuple(Block(kind="topic", id=str(i), tokens=t) for i, t in enumerate(blocks))
    for size in ("row", "compare", "large"):
        assert read(strip_svg(strip_of(summary, listed), size)).elements[0].tag == "svg"


@given(st.lists(st.one_of(st.none(), st.integers(0, 2**53 - 1)), max_size=60))
def test_any_trend_can_be_drawn_and_gaps_stay_gaps(trend: list[int | None]) -> None:
    svg = spark_svg(trend, 1_000)
    known = [value for value in trend if value is not None]
    assert bool(svg) == (len(known) >= 2)
    if svg:
        runs = sum(1 for i, v in enumerate(trend) if v is not None
                   and (i == 0 or trend[i - 1] is None))  # fmt: skip
        assert svg.count("M") == runs + 1  # and the trigger's line
