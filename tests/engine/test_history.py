"""The history: its totals, its input hash, its JSON form and the errors of a bad document."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from ctxhealth.engine import Bulk, History, HistoryError, Item, Topic

from .histories import Case, cases, said, sent_ids, tool_turn, turn


def _history() -> History:
    return History(
        system=900,
        tools=1_500,
        extras=60,
        bulks=(Bulk("b1", 500, "what came first", 3),),
        topics=(turn("t1", 40, 60), tool_turn("t2", 2, 200)),
        current=turn("t3", 30, 10),
    )


def test_totals_are_given_by_part_and_scope() -> None:
    history = _history()
    assert history.totals() == {
        "system": 900,
        "tools": 1_500,
        "extras": 60,
        "bulks": 500,
        "topics": 100 + 460,
        "current": 40,
    }
    assert history.total("history") == 1_100
    assert history.total("prompt") == 1_100 + 2_460
    assert (history.fixed, history.beside) == (2_400, 2_460)


@pytest.mark.parametrize("part", ["system", "tools", "extras"])
def test_a_prompt_with_an_unknown_part_has_no_total(part: str) -> None:
    history = replace(_history(), **{part: None})
    assert history.beside is None
    assert history.total("history") == 1_100
    with pytest.raises(ValueError, match=f"^{part}: size unknown"):
        history.total("prompt")


def test_an_unknown_scope_is_refused() -> None:
    with pytest.raises(ValueError, match="scope: must be"):
        _history().total("window")  # type: ignore[arg-type]


def test_the_head_anchor_is_the_first_user_message_that_is_still_sent() -> None:
    history = _history()
    assert history.head_anchor is history.topics[0].items[0]
    assert history.last_user_message is history.current.items[0]
    inside = Bulk("b0", 0, " ", 1, (said("greeting", 5), said("old", 9, "user")))
    blank = replace(history, bulks=(inside,))
    assert blank.head_anchor == inside.items[1]
    assert History().head_anchor is None


def test_a_tool_result_with_the_role_of_a_user_is_no_user_message() -> None:
    answer = Item("r", "user", "tool_result", 9, "x", answers=("c",))
    mixed = Item("m", "user", "text", 9, "x", answers=("c",))
    assert not answer.is_user_message
    assert not mixed.is_user_message
    assert History(current=Topic("t", (answer, mixed))).last_user_message is None


def test_a_blank_bulk_weighs_what_its_items_weigh() -> None:
    inner = Bulk("b1", 7, "\n", 1, (said("y", 30), Bulk("b2", 11, "a summary")))
    bulk = Bulk("b0", 5, "", 2, (said("x", 20), inner))
    assert bulk.is_blank
    assert bulk.tokens == 20 + 30 + 11
    assert [item.id for item in bulk.sent()] == ["x", "y", "b2"]
    assert sent_ids(History(bulks=(bulk,))) == ["x", "y", "b2"]


def test_a_bulk_with_an_unknown_text_is_taken_as_summarised() -> None:
    bulk = Bulk("b", 5, None, 2, (said("x", 20),))
    assert not bulk.is_blank
    assert bulk.tokens == 5
    assert sent_ids(History(bulks=(bulk,))) == []


def test_the_input_hash_is_that_of_the_history_alone() -> None:
    history = _history()
    assert len(history.revision) == 64
    assert replace(history, system=1, tools=None, extras=999).revision == history.revision


def test_the_input_hash_changes_with_every_part_of_the_history() -> None:
    history = _history()
    first, second = history.topics
    item = first.items[0]
    changed_items = [
        replace(item, id="other"),
        replace(item, role="system"),
        replace(item, kind="data"),
        replace(item, tokens=41),
        replace(item, text="other"),
        replace(item, text=None),
        replace(item, name="other"),
        replace(item, calls=("c",)),
        replace(item, answers=("c",)),
        replace(item, read=False),
        replace(item, chars=7),
    ]
    bulk = history.bulks[0]
    others = [
        replace(history, topics=(Topic("t1", (new, *first.items[1:])), second))
        for new in changed_items
    ]
    others += [
        replace(history, topics=(second, first)),
        replace(history, topics=(replace(first, title="title"), second)),
        replace(history, bulks=(replace(bulk, text="other"),)),
        replace(history, bulks=(replace(bulk, records=4),)),
        replace(history, bulks=(replace(bulk, items=(item,)),)),
        replace(history, topics=(first, second, history.current), current=Topic("t4")),
    ]
    hashes = [other.revision for other in others]
    assert len({*hashes, history.revision}) == len(others) + 1


def test_the_input_hash_takes_a_lone_surrogate() -> None:
    broken = Topic("t", (Item("i", "user", "text", 3, "half an emoji \ud83d"),))
    assert len(History(current=broken).revision) == 64


@given(cases())
@settings(deadline=None, max_examples=100)
def test_a_history_survives_json(case: Case) -> None:
    data = json.loads(json.dumps(case.history.to_dict()))
    again = History.from_dict(data)
    assert again == case.history
    assert again.revision == case.history.revision


def test_absent_parts_are_unknown_or_empty() -> None:
    assert History.from_dict({}) == History(None, None, None)


@pytest.mark.parametrize(
    ("document", "path", "reason"),
    [
        ([], "history", "must be an object, not list"),
        ({"system": -1}, "system", "must be an integer, 0 or more"),
        ({"tools": 1.5}, "tools", "must be an integer, 0 or more"),
        ({"extras": True}, "extras", "must be an integer, 0 or more"),
        ({"topics": {}}, "topics", "must be a list"),
        ({"topics": [3]}, "topics[0]", "must be an object, not int"),
        ({"topics": [{}]}, "topics[0].id", "must be a text"),
        ({"current": {"id": 4}}, "current.id", "must be a text"),
        (
            {"current": {"id": "t", "items": [{"id": "i", "role": "user", "kind": "text"}]}},
            "current.items[0].tokens",
            "must be an integer, 0 or more",
        ),
        (
            {
                "current": {
                    "id": "t",
                    "items": [
                        {"id": "i", "role": "user", "kind": "text", "tokens": 1, "calls": [1]}
                    ],
                }
            },
            "current.items[0].calls",
            "must be a list of texts",
        ),
        (
            {
                "current": {
                    "id": "t",
                    "items": [
                        {"id": "i", "role": "user", "kind": "text", "tokens": 1, "read": "no"}
                    ],
                }
            },
            "current.items[0].read",
            "must be true or false",
        ),
        ({"bulks": [{"id": "b"}]}, "bulks[0].tokens", "must be an integer, 0 or more"),
    ],
)
def test_a_bad_document_names_the_field_and_the_reason(
    document: object, path: str, reason: str
) -> None:
    with pytest.raises(HistoryError) as caught:
        History.from_dict(document)
    assert str(caught.value) == f"{path}: {reason}"


def test_a_document_that_is_nested_without_end_is_refused() -> None:
    bulk: dict[str, object] = {"id": "b", "tokens": 1, "text": ""}
    for _ in range(5_000):
        bulk = {"id": "b", "tokens": 1, "text": "", "items": [{"bulk": bulk}]}
    with pytest.raises(HistoryError, match="nested deeper than 20"):
        History.from_dict({"bulks": [bulk]})
