"""Bytes into lines, lines into objects: nothing read twice, nothing lost without a word."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxhealth.readers.lines import LineSplitter
from ctxhealth.readers.objects import ObjectParser
from ctxhealth.readers.seen import Seen
from ctxhealth.readers.times import in_order, millis


def parse(*lines: bytes) -> tuple[list[Any], list[str]]:
    parser = ObjectParser(lambda row: "sessionId" in row)
    found = [parser.parse(line) for line in lines] + [parser.flush()]
    rows = [row for parsed in found for row in parsed.rows]
    return rows, [problem for parsed in found for problem in parsed.problems]


@given(st.lists(st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"x"))), st.data())
def test_any_cutting_into_chunks_gives_the_same_lines(lines: list[bytes], data: Any) -> None:
    raw = b"".join(line + b"\n" for line in lines)
    splitter, found, at = LineSplitter(), [], 0
    while at < len(raw):
        size = data.draw(st.integers(1, 30))
        found += [line.data for line in splitter.push(raw[at : at + size])]
        at += size
    assert found == lines
    assert splitter.consumed == len(raw)
    assert splitter.waiting == 0


def test_an_unfinished_line_waits_and_is_not_consumed() -> None:
    splitter = LineSplitter()
    assert [line.data for line in splitter.push(b'{"a":1}\n{"b"')] == [b'{"a":1}']
    assert (splitter.consumed, splitter.waiting) == (8, 4)
    assert splitter.peek() == b'{"b"'
    assert [line.data for line in splitter.push(b":2}\n")] == [b'{"b":2}']
    assert splitter.consumed == 16


def test_a_line_over_the_limit_is_dropped_with_its_size_and_the_next_one_is_read() -> None:
    splitter = LineSplitter(limit=10)
    found = list(splitter.push(b"x" * 7)) + list(splitter.push(b"x" * 7 + b"\nok\n"))
    assert [(line.data, line.size) for line in found] == [(None, 15), (b"ok", 3)]
    assert splitter.consumed == 18


def test_two_objects_on_one_line_are_two_objects() -> None:
    assert parse(b'{"a":1}{"b":2}', b'{"c":3} {"d":4}') == (
        [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}],
        [],
    )


def test_a_whole_row_behind_a_torn_one_is_kept_and_the_torn_one_told() -> None:
    torn = b'{"type":"user","message":{"content":"abc'
    whole = b'{"type":"user","sessionId":"s","message":{"content":"def"}}'
    rows, problems = parse(torn + whole)
    assert rows == [{"type": "user", "sessionId": "s", "message": {"content": "def"}}]
    assert problems == [f"a torn object of {len(torn)} characters before a whole one"]


def test_an_object_inside_a_torn_row_is_not_taken_for_a_row() -> None:
    rows, problems = parse(b'{"type":"user","sessionId":"s","message":{"role":"user"}')
    assert rows == []
    assert len(problems) == 1


def test_a_string_with_raw_newlines_is_put_together_again() -> None:
    rows, problems = parse(b'{"a":"one', b"two", b'three"}', b'{"b":2}')
    assert rows == [{"a": "one\ntwo\nthree"}, {"b": 2}]
    assert problems == []


def test_a_torn_line_before_a_whole_one_is_told_and_costs_nothing_else() -> None:
    rows, problems = parse(b'{"a":"one', b'{"b":2}')
    assert rows == [{"b": 2}]
    assert problems == ["a torn object of 9 characters"]


def test_nul_bytes_bad_utf8_and_a_mark_at_the_start_lose_nothing_that_can_be_read() -> None:
    rows, problems = parse(
        b"\x00\x00\x00", b'\x00\x00{"a":1}', '\ufeff{"b":2}'.encode(), b'{"c":"\xff\xfe"}'
    )
    assert rows == [{"a": 1}, {"b": 2}, {"c": "\ufffd\ufffd"}]
    assert problems == ["3 bytes of NUL"]


def test_blank_lines_are_no_problem_and_what_is_no_object_is() -> None:
    rows, problems = parse(b"", b"   ", b"\r", b"[1]", b"12", b'{"a":1}\r')
    assert rows == [{"a": 1}]
    assert problems == ["a JSON list stands where an object should",
                        "a JSON int stands where an object should"]  # fmt: skip


def test_nesting_without_end_is_a_problem_and_not_a_crash() -> None:
    rows, problems = parse(b"[" * 200_000, b'{"a":' * 100_000)
    assert rows == []
    assert len(problems) == 2


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_no_bytes_raise(lines: list[bytes]) -> None:
    rows, _ = parse(*lines)
    assert all(isinstance(row, dict) for row in rows)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers()), min_size=1, max_size=5))
def test_every_whole_object_is_found_however_lines_are_joined(rows: list[dict[str, int]]) -> None:
    line = "".join(json.dumps(row) for row in rows).encode()
    assert parse(line)[0] == rows


def test_an_id_is_seen_again_until_it_is_the_oldest_of_too_many() -> None:
    seen = Seen(limit=3)
    assert [seen.again(id) for id in "abca"] == [False, False, False, True]
    again = Seen(limit=3)
    again.restore(seen.snapshot())
    assert [again.again(id) for id in "dbca"] == [False, True, True, False]


def test_times_are_read_in_every_spelling_and_never_step_back() -> None:
    assert millis("2026-10-01T10:00:00.250Z") == 1_790_848_800_250
    assert millis("2026-10-01T12:00:00+02:00") == 1_790_848_800_000
    assert millis(1_790_848_800) == millis(1_790_848_800_000) == 1_790_848_800_000
    no_times: list[Any] = ["soon", None, True, -5, {}, "0001-01-01"]
    assert [millis(value) for value in no_times] == [None] * 6
    assert in_order(1_000, 5_000) == 5_000
    assert in_order(9_000, 5_000) == 9_000
    assert in_order(1_000, 9_000_000) == 1_000
