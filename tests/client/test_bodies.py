"""One event's bytes: what is left out, what is cut, and that nothing a host hands in breaks it."""

from __future__ import annotations

import datetime
import enum
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxhealth.client.bodies import BODY_BYTES, body, identifier
from ctxhealth.client.limits import EVENT_BYTES
from ctxhealth.client.snapshots import parts_of
from ctxhealth.client.texts import TextPolicy, cut

EXCERPT, FULL, NONE = TextPolicy("excerpt"), TextPolicy("full"), TextPolicy("none")


def _made(kind: str, texts: TextPolicy = EXCERPT, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(body(kind, 7, "c", fields, texts))
    return made


def test_unknown_is_left_out_and_zero_is_not() -> None:
    assert _made("chat.updated", window=None, system=0) == {
        "type": "chat.updated",
        "ts": 7,
        "chat": "c",
        "system": 0,
    }


def test_only_an_excerpt_of_a_text_leaves_by_default() -> None:
    made = _made("message.added", text="x" * 1_000)
    assert made["excerpt"] == "x" * 400 and "text" not in made


def test_a_text_in_content_parts_or_bytes_is_an_excerpt_too() -> None:
    parts = [{"type": "text", "text": "x" * 5_000}]
    for text in (parts, b"x" * 5_000, {"content": "x" * 5_000}):
        made = _made("message.added", text=text)
        assert "text" not in made and len(made["excerpt"]) == 400
    bulks = [{"id": "b", "tokens": 1, "excerpt": "y" * 3_000}]
    assert len(_made("history.snapshot", bulks=bulks)["bulks"][0]["excerpt"]) == 400


def test_with_none_no_content_leaves() -> None:
    made = _made("message.added", NONE, text="x", excerpt="y", title="z", tokens=3)
    assert {"text", "excerpt", "title"} & made.keys() == set() and made["tokens"] == 3
    snapshot = _made("history.snapshot", NONE, topics=[{"id": "t", "title": "secret plan"}])
    assert snapshot["topics"] == [{"id": "t"}]


def test_with_full_the_text_leaves_up_to_its_limit() -> None:
    assert _made("message.added", FULL, text="x" * 50)["text"] == "x" * 50
    long = _made("message.added", FULL, text="a" * 40_000 + "z" * 80_000)
    assert len(long["text"]) <= 60_000 and "cut ...]" in long["text"]


def test_the_notes_own_words_leave_in_every_mode() -> None:
    assert _made("note", NONE, text="hello", level="info")["text"] == "hello"
    assert len(_made("note", text="x" * 10_000)["text"]) <= 4_000


def test_the_owners_redactor_comes_on_top_and_its_failure_is_no_leak() -> None:
    own = TextPolicy("excerpt", lambda text: text.replace("Bond", "[name]"))
    assert _made("message.added", own, text="James Bond")["excerpt"] == "James [name]"
    broken = TextPolicy("excerpt", lambda text: str(1 // 0))
    assert "Bond" not in json.dumps(_made("message.added", broken, text="James Bond"))


def test_an_unknown_text_mode_is_a_clear_error() -> None:
    with pytest.raises(ValueError, match="some"):
        TextPolicy("some")


class _Colour(enum.Enum):
    RED = "red"


class _Evil:
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_odd_values_become_what_json_can_say() -> None:
    loop: list[Any] = []
    loop.append(loop)
    made = _made(
        "note",
        text="x",
        a=math.nan,
        b=[math.inf, 1.5],
        c=_Colour.RED,
        d=datetime.date(2026, 1, 2),
        e=_Evil(),
        f={1: "int key", None: "none key"},
        g={"set"},
        h=loop,
        i="lone \ud800 surrogate",
    )
    assert made["b"][1] == 1.5 and made["c"] == "red" and made["d"] == "2026-01-02"
    assert made["e"] == "[_Evil]" and made["f"]["1"] == "int key" and made["g"] == ["set"]
    assert "\ud800" not in made["i"]


@given(
    st.dictionaries(
        st.sampled_from(["text", "title", "detail", "labels", "order", "id", "x", "reason"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=20,
        ),
    )
)
def test_any_value_in_any_field_gives_one_json_object_within_the_limit(
    fields: dict[str, Any],
) -> None:
    for texts in (EXCERPT, FULL, NONE):
        raw = body("note", 1, "c", dict(fields), texts)
        assert len(raw) <= BODY_BYTES and raw[:1] == b"{"
        assert json.loads(raw.decode("utf-8"))["ts"] == 1


def test_an_event_over_the_limit_loses_its_bulk_and_says_which() -> None:
    order = [{"id": f"message-{n}", "role": "user", "kind": "text"} for n in range(5_000)]
    made = _made("compaction.finished", attempt="a", reported="ok", added=order, before=9)
    assert made["cut"] == ["added"] and made["before"] == 9


def test_an_event_that_cannot_be_made_small_becomes_a_gap() -> None:
    made = _made("note", text="x", huge=["y" * 1_000] * 100)
    assert (made["type"], made["count"]) == ("gap", 1) and "note" in made["reason"]


def test_full_text_with_characters_of_many_bytes_is_cut_to_fit() -> None:
    for char in ("\U0001f600", "\x01", "ä"):
        raw = body("message.added", 1, "c", {"id": "m", "text": char * 70_000}, FULL)
        assert len(raw) <= BODY_BYTES < EVENT_BYTES
        assert json.loads(raw)["type"] == "message.added"


def test_a_long_id_stays_apart_from_its_neighbours() -> None:
    first, second = identifier("x" * 300 + "a"), identifier("x" * 300 + "b")
    assert len(first) == len(second) == 200 and first != second
    assert identifier("short") == "short" and identifier(7) == "7" and identifier("") == "-"


def test_names_longer_than_the_server_takes_are_cut() -> None:
    labels = {"a": 1, "b": "x" * 300}
    made = _made("chat.updated", model="m" * 500, title="t" * 9_000, labels=labels)
    assert len(made["model"]) == 200 and len(made["title"]) == 4_000
    assert made["labels"]["a"] == "1" and len(made["labels"]["b"]) == 200


def test_cut_says_how_much_went() -> None:
    assert cut("short", 100) == "short"
    shown = cut("h" * 500 + "t" * 500, 200)
    assert len(shown) <= 200 and "800 characters" in shown
    assert shown.startswith("h") and shown.endswith("t")


def test_a_small_snapshot_is_one_event_without_parts() -> None:
    structure = {"system": 5, "topics": [{"id": "t"}]}
    assert parts_of(structure) == [structure]
    assert parts_of({"system": 5}) == [{"system": 5}]


def test_a_large_snapshot_is_split_in_order_and_nothing_is_lost() -> None:
    item = {"role": "user", "kind": "text", "in": "t"}
    order = [{"id": f"message-{n}", **item} for n in range(9_000)]
    topics = [{"id": f"t{n}", "tokens": n, "title": "x" * 50} for n in range(300)]
    parts = parts_of({"system": 5, "topics": topics, "order": order})
    assert [part["part"] for part in parts] == list(range(1, len(parts) + 1))
    assert {part["parts"] for part in parts} == {len(parts)} and len(parts) > 5
    assert [entry for part in parts for entry in part.get("order", [])] == order
    assert [entry for part in parts for entry in part.get("topics", [])] == topics
    for part in parts:
        assert "cut" not in _made("history.snapshot", revision="r", **part)
