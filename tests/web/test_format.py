from __future__ import annotations

import pytest

from ctxhealth.web import format as fmt

NOW = 1_796_062_500_000


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "?"), ("", "?"), (0, "0"), (149_761, "149,761"), (-261, "−261"), (0.6, "0.60")],
)
def test_a_number_has_separators_and_unknown_is_not_zero(value: float | None, text: str) -> None:
    assert fmt.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(999, "999"), (1_000, "1.0k"), (99_949, "99.9k"), (140_261, "140k"), (1_250_000, "1.2M")],
)
def test_a_short_number_keeps_its_order_of_magnitude(value: int, text: str) -> None:
    assert fmt.short(value) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(149_761, 195_904, "76%"), (196_602, 196_608, "100.0%"), (5, 0, "—"), (None, 9, "?"),
     (9, None, "?"), (200, 100, "200%"), (100, 100, "100%"), (994, 1_000, "99.4%")],
)  # fmt: skip
def test_a_share_never_divides_by_zero(part: int | None, whole: int | None, text: str) -> None:
    assert fmt.percent(part, whole) == text


@pytest.mark.parametrize(
    ("passed", "text"),
    [(0, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (3_600_000, "1 h"), (47 * 3_600_000, "47 h"),
     (48 * 3_600_000, "2 d"), (-5_000, "0 s")],
)  # fmt: skip
def test_an_age_counts_in_one_unit(passed: int, text: str) -> None:
    assert fmt.age(NOW - passed, NOW) == text


def test_a_moment_no_calendar_has_is_unknown() -> None:
    assert fmt.clock(2**53, NOW) == "?"
    assert fmt.iso(2**53) == ""


def test_the_clock_names_the_day_only_where_it_is_another() -> None:
    assert fmt.clock(NOW - 60_000, NOW) == "18:14:00"
    assert fmt.clock(NOW - 86_400_000, NOW) == "29 Nov 18:15:00"
    assert fmt.clock(NOW - 366 * 86_400_000, NOW) == "29 Nov 2025 18:15:00"


@pytest.mark.parametrize(
    ("ms", "text"),
    [(None, "?"), (120, "120 ms"), (11_800, "11.8 s"), (185_000, "3 min 05 s"),
     (7_320_000, "2 h 02 min")],
)  # fmt: skip
def test_a_duration_is_read_at_a_glance(ms: int | None, text: str) -> None:
    assert fmt.duration(ms) == text
