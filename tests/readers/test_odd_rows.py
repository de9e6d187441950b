"""Rows of every wrong shape: a reader of an internal format never raises, and what it sends
is always fit for the wire."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxhealth.readers.codex import CodexReader
from ctxhealth.readers.pi import PiReader
from ctxhealth.readers.single import SingleChatReader
from tests.readers.pi_session import PiSession
from tests.readers.rollout import THREAD
from tests.readers.session import check, fit
from tests.readers.test_codex import whole

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 2**60, 1.5, "", "x" * 300, "\x00", [], [None], [[]], {}, {"type": 3},
     {"text": 7}, [{"type": "text", "text": None}], {"http_status_code": "no"}]
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a row where a value stands."""
    keys = value.items() if isinstance(value, dict) else enumerate(value)
    found = [path] if path else []
    for key, inner in keys if isinstance(value, (dict, list)) else ():
        found += places(inner, (*path, key)) if isinstance(inner, (dict, list)) else [(*path, key)]
    return found


def changed(row: Any, path: tuple[Any, ...], value: Any) -> Any:
    row = json.loads(json.dumps(row))
    inner = row
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return row


def pi_rows() -> list[dict[str, Any]]:
    session = PiSession()
    session.message("system", content="", sections={"rules": "Be brief."}, toolsAdded=[{}])
    session.prompt()
    session.call(20_000, "toolu_1")
    kept = session.result("toolu_1")
    session.failure('400: {"message":"prompt is too long"}')
    session.compaction(1_428, kept, usage={"input": 10, "output": 0}, fromHook=False)
    session.answer(2_200)
    session.message("bashExecution", command="ls", output="notes.md")
    session.add("branch_summary", summary="We looked.")
    return session.rows


ROWS: list[tuple[type[SingleChatReader], list[dict[str, Any]]]] = [
    (CodexReader, whole().rows), (PiReader, pi_rows()),
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_value_in_any_place_makes_a_reader_raise_or_send_what_is_not_fit(
    data: st.DataObject,
) -> None:
    make, rows = data.draw(st.sampled_from(ROWS))
    rows = list(rows)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(rows) - 1))
        path = data.draw(st.sampled_from(places(rows[at])))
        try:
            rows[at] = changed(rows[at], path, data.draw(ODD))
        except (KeyError, IndexError, TypeError):
            continue
    reader = make("session")
    events = [e for row in rows for e in reader.feed(json.dumps(row).encode())] + reader.finish()
    fit(events)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.integers(0, 3))
def test_rows_left_out_or_torn_never_stop_a_rollout(gone: list[int], cut: int) -> None:
    lines = [line for at, line in enumerate(whole().lines()) if at not in gone]
    lines = [line[: len(line) // 2] if cut and at % 7 == cut else line
             for at, line in enumerate(lines)]  # fmt: skip
    reader = CodexReader(THREAD)
    events = [event for line in lines for event in reader.feed(line)] + reader.finish()
    check(events)
    turns: set[str] = set()
    for event in events:
        if event["type"] == "turn.started":
            turns.add(event["turn"])
        elif event["type"] == "turn.ended":
            turns.remove(event["turn"])
