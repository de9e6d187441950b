"""The time axis: to scale, bounded, and drawn whatever the times and numbers are."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from ctxhealth.core.model import ReadingPoint, Source
from ctxhealth.store.queries.ranges import Range
from ctxhealth.web.incidents_axis import MOST_MARKS, TICKS, Axis, axis_of
from ctxhealth.web.incidents_axis_svg import axis_svg, height_of
from ctxhealth.web.incidents_moment import steps_of
from tests.web.factories import NOW, finding

NONE: dict[str, list[dict[str, Any]]] = {}


def reading(at: int, load: int | None, source: Source = Source.PROVIDER) -> ReadingPoint:
    return ReadingPoint(
        chat_seq=1, at=at, load=load, source=source, window=200_000, budget=190_000,
        trigger=160_000,
    )  # fmt: skip


def drawn(axis: Axis) -> ElementTree.Element:
    return ElementTree.fromstring(axis_svg(axis, now=axis.first, here="?"))


def test_half_the_time_is_half_the_way() -> None:
    axis = axis_of([], NONE, [], first=NOW, last=NOW + 100_000)
    assert axis.x(NOW + 50_000) == pytest.approx(50.0)
    assert 0 < axis.x(NOW) < 2 and 98 < axis.x(NOW + 100_000) < 100


def test_a_load_stands_at_its_height_and_an_unknown_one_nowhere() -> None:
    points = [reading(NOW, 100_000), reading(NOW + 1_000, None), reading(NOW + 2_000, 50_000)]
    axis = axis_of(points, NONE, [], first=NOW, last=NOW + 10_000)
    high, gap, low = (point.y for point in axis.points)
    assert gap is None
    assert high is not None and low is not None and high == pytest.approx(2 * low, rel=1e-3)
    kinds = {line.kind: line.value for line in axis.lines}
    assert kinds == {"window": 200_000, "budget": 190_000, "trigger": 160_000}


def test_a_count_beyond_every_limit_leaves_the_scale_to_the_others() -> None:
    calm = axis_of([reading(NOW, 100_000)], NONE, [], first=NOW, last=NOW + 9_000)
    wild = axis_of(
        [reading(NOW, 100_000), reading(NOW + 1, 9_000_000)], NONE, [], first=NOW, last=NOW + 9_000
    )
    assert wild.points[0].y == calm.points[0].y
    assert (wild.points[1].y, wild.points[1].beyond) == (None, 9_000_000)
    assert "9.0M" in axis_svg(wild)


def test_bands_are_cut_at_the_ends_and_what_lies_outside_is_left_out() -> None:
    lanes: dict[str, list[dict[str, Any]]] = {
        "turns": [
            {"at": NOW - 60_000, "to": NOW + 1_000, "seq": 1, "tone": "info", "says": "before"},
            {"at": NOW + 5_000, "to": None, "seq": 2, "tone": "info", "says": "goes on"},
            {"at": NOW - 90_000, "to": NOW - 80_000, "seq": 3, "tone": "info", "says": "long ago"},
        ],
        "replies": [{"at": NOW + 99_000, "seq": 4, "tone": "critical", "says": "after"}],
    }
    axis = axis_of([], lanes, [], first=NOW, last=NOW + 10_000)
    turns, replies = axis.lanes[0], axis.lanes[3]
    assert [band.says for band in turns.bands] == ["before", "goes on"]
    assert turns.bands[0].x == 0.0
    assert turns.bands[1].x + turns.bands[1].width == pytest.approx(100.0)
    assert replies.marks == ()


def test_too_many_marks_are_counted_and_not_drawn() -> None:
    many = [
        {"at": NOW + n, "seq": n + 1, "tone": "good", "says": str(n)} for n in range(MOST_MARKS + 7)
    ]
    axis = axis_of([], {"compactions": many}, [], first=NOW, last=NOW + 10_000)
    lane = axis.lanes[1]
    assert (len(lane.marks), lane.more) == (MOST_MARKS, 7)


def test_each_finding_has_a_row_and_those_that_another_explains_have_none() -> None:
    found = [
        finding("stalled", since=NOW, closed_at=NOW + 5_000, closed_seq=9),
        finding("stalled", since=NOW + 7_000, since_seq=80),
        finding("over_budget", since=NOW + 100, suppressed_by="stalled"),
        finding("stopped", since=NOW + 50),
    ]
    axis = axis_of([], NONE, found, first=NOW, last=NOW + 10_000)
    rows = [lane for lane in axis.lanes if lane.name == "findings"]
    assert [(row.title, len(row.bands)) for row in rows] == [("stalled", 2), ("stopped", 1)]
    assert [band.label for band in rows[0].bands] == ["stalled", ""]


@pytest.mark.parametrize(
    ("first", "last"),
    [(NOW, NOW), (NOW, NOW + 5_000), (NOW, NOW + 86_400_000 * 40), (NOW, NOW + 86_400_000 * 4_000),
     (0, 2**53 - 1), (2**53 - 10, 2**53 - 1), (-10, 5), (NOW, 0)],
)  # fmt: skip
def test_any_times_give_a_drawing_with_few_ticks(first: int, last: int) -> None:
    axis = axis_of([reading(first, 5), reading(last, 6)], NONE, [], first=first, last=last)
    assert len(axis.ticks) <= TICKS + 2
    assert all(-1 <= x <= 101 for x, _ in axis.ticks)
    assert int(drawn(axis).attrib["height"]) == height_of(axis)


def test_the_drawing_says_its_numbers_in_words_and_every_mark_is_a_link() -> None:
    lanes = {"compactions": [{"at": NOW, "seq": 7, "tone": "critical", "says": "<b>bad</b>"}]}
    points = [reading(NOW, 100_000), reading(NOW + 5, 120_000)]
    root = drawn(axis_of(points, lanes, [], first=NOW, last=NOW + 10_000))
    assert root.attrib["aria-label"] == (
        "Time axis: 2 readings; load from 100,000 to 120,000, highest 120,000; 1 compactions"
    )
    (link,) = [each for each in root.iter("a") if each.attrib["data-seq"] == "7"]
    assert link.attrib["href"] == "?at=7#moment"
    assert link.attrib["aria-label"] == "<b>bad</b>"


def test_steps_go_to_the_events_and_marks_on_either_side() -> None:
    within = Range(first=10, last=20, first_at=0, last_at=0)
    marks = [(5, 0), (12, 0), (15, 0), (18, 0)]
    steps = {step.name: step.seq for step in steps_of(15, within, marks)}
    assert steps == {
        "first": 10, "mark-before": 12, "before": 14, "after": 16, "mark-after": 18, "last": 20,
    }  # fmt: skip
    ends = {step.name: step.seq for step in steps_of(10, within, marks)}
    assert (ends["first"], ends["before"], ends["mark-before"]) == (None, None, None)
    assert steps_of(20, within, marks)[-1].seq is None
