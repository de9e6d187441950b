"""The guarantees of the fallback, over generated histories."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from ctxhealth.engine import (
    History,
    Item,
    KeepRules,
    Plan,
    Scope,
    apply_plan,
    open_calls,
    plan_fallback,
)

from .histories import Case, cases

pytestmark = pytest.mark.timeout(300)

_RULES = st.builds(
    KeepRules,
    turns=st.integers(1, 3),
    results=st.integers(0, 5),
    merge=st.integers(2, 4),
    cut_calls=st.booleans(),
)


@st.composite
def _planned(draw: st.DrawFn) -> tuple[Case, Plan, History]:
    case = draw(cases())
    scope: Scope = draw(st.sampled_from(["prompt", "history"]))
    total = case.history.total(scope)
    share = draw(st.sampled_from([0, 1, 5, 20, 50, 80, 95, 100]))
    plan = plan_fallback(
        case.history,
        target=total * share // 100,
        scope=scope,
        rules=draw(_RULES),
        count=case.count,
    )
    event(plan.outcome)
    for step in plan.steps:
        event(f"level {step.level} {step.step}")
    return case, plan, apply_plan(case.history, plan)


def _check() -> settings:
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(deadline=None, suppress_health_check=quiet, max_examples=100)


def _by_id(history: History) -> dict[str, Item]:
    return {item.id: item for item in history.sent_items()}


@given(_planned())
@_check()
def test_the_totals_of_a_plan_are_those_of_the_histories(made: tuple[Case, Plan, History]) -> None:
    case, plan, after = made
    assert plan.before == case.history.total(plan.scope)
    assert plan.after == after.total(plan.scope)


@given(_planned())
@_check()
def test_a_plan_shrinks_the_history_or_changes_nothing(made: tuple[Case, Plan, History]) -> None:
    case, plan, after = made
    if plan.outcome in ("fell_back", "floor_exceeds_target"):
        assert plan.after < plan.before
        assert plan.lossy
    else:
        assert after == case.history
        assert not plan.steps
        assert not plan.lossy


@given(_planned())
@_check()
def test_a_plan_meets_its_target_or_gives_the_floor(made: tuple[Case, Plan, History]) -> None:
    _, plan, _ = made
    if plan.before <= plan.target:
        assert plan.outcome == "not_needed"
    elif plan.after <= plan.target:
        assert (plan.outcome, plan.floor) == ("fell_back", None)
    else:
        assert plan.outcome in ("floor_exceeds_target", "nothing_foldable")
        assert plan.floor == plan.after


@given(_planned())
@_check()
def test_first_and_last_user_message_stay_verbatim(made: tuple[Case, Plan, History]) -> None:
    case, _, after = made
    kept = _by_id(after)
    for item in (case.history.head_anchor, case.history.last_user_message):
        assert item is None or kept[item.id] == item


@given(_planned())
@_check()
def test_open_calls_stay_verbatim(made: tuple[Case, Plan, History]) -> None:
    case, _, after = made
    kept = _by_id(after)
    before = list(case.history.sent_items())
    pending = open_calls(before)
    for item in before:
        if not pending.isdisjoint(item.calls):
            assert kept[item.id] == item


@given(_planned())
@_check()
def test_a_call_and_its_results_stay_or_go_together(made: tuple[Case, Plan, History]) -> None:
    case, _, after = made
    for made_now in (case.history, after):
        assert len(_by_id(made_now)) == len(list(made_now.sent_items()))
    kept = _by_id(after)
    before = list(case.history.sent_items())
    callers = {call: item.id for item in before for call in item.calls}
    for item in before:
        for call in item.answers:
            if call in callers:
                assert (item.id in kept) == (callers[call] in kept)
        if item.id in kept:
            assert kept[item.id].calls == item.calls
            assert kept[item.id].answers == item.answers


@given(_planned())
@_check()
def test_unread_results_are_touched_last_and_never_leave(made: tuple[Case, Plan, History]) -> None:
    case, plan, after = made
    kept = _by_id(after)
    shortened = [
        item.id for item in case.history.sent_items() if not item.read and kept[item.id] != item
    ]
    if shortened:
        last = plan.steps[-1]
        assert (last.level, last.step) == (6, "large_message")
        assert set(last.touched) <= set(shortened)


@given(_planned())
@_check()
def test_planning_again_changes_nothing_more(made: tuple[Case, Plan, History]) -> None:
    case, plan, after = made
    again = plan_fallback(after, target=plan.target, scope=plan.scope, count=case.count)
    if plan.outcome in ("fell_back", "not_needed"):
        assert again.outcome == "not_needed"


@given(cases(), _RULES)
@_check()
def test_the_floor_is_a_fixed_point(case: Case, rules: KeepRules) -> None:
    plan = plan_fallback(case.history, target=0, rules=rules, count=case.count)
    after = apply_plan(case.history, plan)
    again = plan_fallback(after, target=0, rules=rules, count=case.count)
    assert again.steps == ()
    assert again.after == plan.after


@given(_planned())
@_check()
def test_no_item_grows_and_none_appears(made: tuple[Case, Plan, History]) -> None:
    case, plan, after = made
    before = _by_id(case.history)
    for item in after.sent_items():
        assert item.tokens <= before[item.id].tokens
    assert [i for i in _by_id(case.history) if i in _by_id(after)] == list(_by_id(after))
    for cut in plan.cut:
        assert cut.after < cut.before


@given(_planned())
@_check()
def test_steps_follow_each_other_and_stop_at_the_target(made: tuple[Case, Plan, History]) -> None:
    _, plan, _ = made
    total, level = plan.before, 0
    for step in plan.steps:
        assert total > plan.target
        assert step.before == total
        assert step.after < step.before
        assert step.level >= level
        total, level = step.after, step.level
    assert total == plan.after


@given(_planned())
@_check()
def test_every_item_is_accounted_for(made: tuple[Case, Plan, History]) -> None:
    case, plan, after = made
    kept = _by_id(after)
    before = _by_id(case.history)
    cut = [entry.id for entry in plan.cut]
    assert sorted([*plan.kept_verbatim, *cut, *plan.folded]) == sorted(before)
    assert {*plan.kept_verbatim, *cut} == set(kept)
    for name in plan.kept_verbatim:
        assert kept[name] == before[name]
    for entry in plan.cut:
        assert (entry.before, entry.after) == (before[entry.id].tokens, kept[entry.id].tokens)


@given(_planned())
@_check()
def test_extracts_keep_their_limit_marker_included(made: tuple[Case, Plan, History]) -> None:
    case, _, after = made
    known = {bulk.id: bulk for bulk in case.history.bulks}
    for bulk in after.bulks:
        if bulk != known.get(bulk.id):
            assert bulk.text is None or 0 < len(bulk.text) <= 2_000
            assert bulk.records >= 1


@given(_planned())
@_check()
def test_what_is_beside_the_history_is_left_alone(made: tuple[Case, Plan, History]) -> None:
    case, _, after = made
    assert (after.system, after.tools, after.extras) == (
        case.history.system,
        case.history.tools,
        case.history.extras,
    )
    assert after.current.id == case.history.current.id


@given(_planned())
@_check()
def test_a_plan_is_repeatable_and_plain_json(made: tuple[Case, Plan, History]) -> None:
    case, plan, after = made
    data = plan.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert History.from_dict(json.loads(json.dumps(after.to_dict()))) == after
    twin = History.from_dict(case.history.to_dict())
    assert apply_plan(twin, plan) == after


@given(_planned())
@_check()
def test_a_plan_says_whether_every_text_was_known(made: tuple[Case, Plan, History]) -> None:
    case, plan, _ = made
    sent = (item for item in case.history.sent_items() if item.kind != "image")
    summaries = (bulk.text for bulk in case.history.bulks)
    if None not in {*summaries, *(item.text for item in sent)}:
        assert plan.exact
