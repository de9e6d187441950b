"""Repairing broken pairs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from ctxhealth.engine import (
    Bulk,
    History,
    Topic,
    apply_plan,
    open_calls,
    orphan_results,
    plan_fallback,
    repair_pairs,
)

from .histories import Case, called, cases, per_char, result, said, sent_ids


def _chat(*items: object) -> History:
    return History(0, 0, 0, (), (), Topic("now", items))  # type: ignore[arg-type]


def test_a_whole_history_is_returned_as_it_is() -> None:
    history = _chat(said("u", 5, "user"), called("c", "x"), result("r", "x", 5))
    repaired, repair = repair_pairs(history)
    assert repaired is history
    assert not repair.changed


def test_an_orphan_call_gets_a_synthetic_result_that_says_so() -> None:
    history = _chat(said("u", 5, "user"), called("c", "x"), said("a", 5))
    repaired, repair = repair_pairs(history)
    assert sent_ids(repaired) == ["u", "c", "repair:x", "a"]
    added = repaired.current.items[2]
    assert (added.role, added.kind, added.answers) == ("tool", "tool_result", ("x",))
    assert "no result was recorded" in (added.text or "")
    assert added.tokens == 17
    assert repair.closed == ("x",)


def test_a_synthetic_result_is_sized_by_the_agents_own_counter() -> None:
    repaired, _ = repair_pairs(_chat(called("c", "x")), count=per_char)
    added = repaired.current.items[1]
    assert added.tokens == len(added.text or "")


def test_a_missing_sibling_is_closed_behind_the_results_that_came() -> None:
    history = _chat(called("c", "x", "y", "z"), result("ry", "y", 5), said("a", 5))
    repaired, repair = repair_pairs(history)
    assert sent_ids(repaired) == ["c", "ry", "repair:x", "repair:z", "a"]
    assert repair.closed == ("x", "z")


def test_an_orphan_result_is_dropped() -> None:
    history = _chat(result("r", "x", 5), said("a", 5))
    repaired, repair = repair_pairs(history)
    assert sent_ids(repaired) == ["a"]
    assert (repair.closed, repair.dropped) == ((), ("x",))


def test_a_result_before_its_call_is_dropped_and_the_call_closed() -> None:
    history = _chat(result("r", "x", 5), called("c", "x"))
    repaired, repair = repair_pairs(history)
    assert sent_ids(repaired) == ["c", "repair:x"]
    assert (repair.closed, repair.dropped) == (("x",), ("x",))


def test_a_second_result_and_a_repeated_call_are_dropped() -> None:
    """A timeout in the middle of a compaction doubled one orphan; it is one orphan."""
    history = _chat(
        called("c", "x"),
        result("r", "x", 5),
        called("c again", "x"),
        result("r again", "x", 5),
        called("c third", "x", "y"),
        result("ry", "y", 5),
    )
    repaired, repair = repair_pairs(history)
    assert sent_ids(repaired) == ["c", "r", "c third", "ry"]
    assert repaired.current.items[2].calls == ("y",)
    assert repair.repeated == ("x", "x")
    assert repair.dropped == ("x",)


def test_a_message_that_also_says_something_keeps_its_text() -> None:
    mixed = replace(said("m", 9, "user"), answers=("gone",))
    repaired, repair = repair_pairs(_chat(mixed))
    assert repaired.current.items == (replace(mixed, answers=()),)
    assert repair.dropped == ("gone",)


def test_a_call_in_flight_stays_open() -> None:
    history = _chat(called("c", "x", "y"))
    repaired, repair = repair_pairs(history, in_flight=["x"])
    assert sent_ids(repaired) == ["c", "repair:y"]
    assert repair.closed == ("y",)


def test_a_pair_across_two_topics_is_whole() -> None:
    first, second = Topic("t0", (called("c", "x"),)), Topic("t1", (result("r", "x", 5),))
    history = History(0, 0, 0, (), (first, second))
    assert repair_pairs(history)[0] is history


def test_a_topic_of_orphans_goes_and_a_blank_bulk_is_repaired_too() -> None:
    blank = Bulk("b", 0, "", 1, (said("u", 5, "user"), called("c", "x")))
    history = History(0, 0, 0, (blank,), (Topic("t", (result("r", "lost", 5),)),))
    repaired, repair = repair_pairs(history)
    assert repaired.topics == ()
    assert sent_ids(repaired) == ["u", "c", "repair:x"]
    assert repaired.total() == 5 + 20 + 17
    assert repair.to_dict() == {"closed": ["x"], "dropped": ["lost"], "repeated": []}


@given(cases())
@settings(deadline=None, max_examples=200)
def test_after_a_repair_nothing_is_broken_and_nothing_more_to_do(case: Case) -> None:
    repaired, _ = repair_pairs(case.history, count=case.count)
    items = list(repaired.sent_items())
    assert not open_calls(items)
    assert not orphan_results(items)
    assert repair_pairs(repaired)[0] is repaired
    seen: set[str] = set()
    for item in items:
        assert seen.issuperset(item.answers)
        seen.update(item.calls)


@given(cases())
@settings(deadline=None, max_examples=100)
def test_a_repair_loses_no_words_and_frees_what_open_calls_held(case: Case) -> None:
    repaired, _ = repair_pairs(case.history, count=case.count)
    kept = set(sent_ids(repaired))
    for item in case.history.sent_items():
        assert item.id in kept or item.is_call or item.is_result
    floor = plan_fallback(repaired, target=0, count=case.count).after
    whole = apply_plan(repaired, plan_fallback(repaired, target=0, count=case.count))
    assert whole.total() == floor
