"""How long one look at a board serves every browser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ctxhealth.live.looks import MAX_SHARED_SECONDS, SHARED_SECONDS, Look, pause_for
from ctxhealth.store.queries import BoardRow


def rows_of(count: int) -> list[BoardRow]:
    summary = cast(Any, None)  # not looked at
    return [
        BoardRow(id=n, agent="a", runtime="r", external_id=str(n), version=1, summary=summary)
        for n in range(count)
    ]


def look_at(rows: list[BoardRow]) -> Look:
    loaded = cast(Any, None)  # not looked at
    return Look(loaded, 0, 0.0, rows, [], {}, {})


def test_a_page_of_which_little_is_new_is_looked_at_four_times_a_second() -> None:
    rows = rows_of(100)
    news = [replace(row, version=2) if row.id < 3 else row for row in rows]
    assert pause_for(news, look_at(rows)) == SHARED_SECONDS
    assert pause_for(rows, look_at(rows)) == SHARED_SECONDS


def test_a_page_of_which_much_is_new_at_once_goes_once_a_second() -> None:
    rows = rows_of(100)
    half = [replace(row, version=2) if row.id % 2 else row for row in rows]
    some = [replace(row, version=2) if row.id < 15 else row for row in rows]
    assert pause_for(half, look_at(rows)) == MAX_SHARED_SECONDS
    assert SHARED_SECONDS < pause_for(some, look_at(rows)) < MAX_SHARED_SECONDS


def test_the_first_look_of_a_small_board_is_no_reason_to_wait() -> None:
    assert pause_for(rows_of(2), None) == SHARED_SECONDS
