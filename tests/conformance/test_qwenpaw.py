"""QwenPaw's cases: a window of 1,000, a trigger of 0.8 and a budget of 950 unless said."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.core.limits import budget_of, crosses, default_reserve
from ctxhealth.core.rules import Thresholds
from ctxhealth.engine import (
    Episode,
    Guard,
    History,
    Item,
    KeepRules,
    LatchPolicy,
    Reply,
    Topic,
    apply_plan,
    fall_back,
    judge_reply,
    plan_fallback,
)
from tests.core.story import Story
from tests.engine.histories import called, per_four, said, sent_ids, tool_turn, turn

from .cases import covers

WINDOW = 1_000
RESERVE = default_reserve(WINDOW, Thresholds())
# That agent shortens no large messages: here only what its own stages do is looked at.
NO_CUTS = KeepRules(large_in_current=1.0, large_in_topics=1.0)


class Prompt:
    """What the guard counts; a forced compaction leaves the next size, or changes nothing."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = list(sizes)
        self.counts = 0
        self.compactions = 0

    def count(self) -> int:
        self.counts += 1
        return self.sizes[0]

    def compact(self, limit: int) -> None:
        self.compactions += 1
        if len(self.sizes) > 1:
            del self.sizes[0]


@covers("Q01", "Q02", "Q03", "Q04", "Q05", "Q10")
@pytest.mark.parametrize(
    ("case", "window", "count", "cap", "passes", "limit", "forced"),
    [
        ("Q01", 1_000, 990, None, False, 950, 1),
        ("Q02", 1_000, 900, None, True, 950, 0),
        ("Q03", 1_000, 850, 200, False, 800, 1),
        ("Q04", 1_000, 750, None, True, 950, 0),
        ("Q05", 1_000, 750, 300, False, 700, 1),
        ("Q10", 32_768, 31_430, None, False, 31_130, 1),
        ("Q10", 32_768, 31_130, None, True, 31_130, 0),
    ],
)
def test_the_guard_passes_or_refuses_before_any_call(
    case: str, window: int, count: int, cap: int | None, passes: bool, limit: int, forced: int
) -> None:
    prompt = Prompt(count)
    guard = Guard(window, default_reserve(window, Thresholds()))
    got = guard.before_send(prompt.count, prompt.compact, cap)
    assert (got.ok, got.limit, got.corrected) == (passes, limit, count)
    assert (prompt.compactions, prompt.counts) == (forced, 1 + forced)
    if not passes:
        assert "CONTEXT_UNFIT" in got.message
        assert f"{count:,}" in got.message and f"{limit:,}" in got.message


@covers("Q01")
def test_a_visible_refusal_is_correct_behaviour_and_no_request() -> None:
    story = Story().opened(window=WINDOW, reserve=RESERVE).turn()
    story.say("guard.refused", count=990, limit=950, window=WINDOW, code="CONTEXT_UNFIT")
    assert story.severity("refused") == "info"
    assert story.state.requests.answered == 0
    assert "silent_empty" not in story.codes()


@covers("Q02")
def test_a_prompt_between_trigger_and_budget_with_nothing_to_fold_is_answered() -> None:
    story = Story().opened(window=WINDOW, reserve=RESERVE, trigger={"ratio": 0.8})
    story.compacts(900, 900, reason="no_foldable_region", steps=[], summarizer={"calls": 0})
    assert story.state.compactions.recent[-1].outcome == "nothing_foldable"
    story.reply(900)
    assert story.row.headroom.budget == 50
    assert "over_budget" not in story.codes()


@covers("Q07")
def test_a_store_that_cannot_be_written_evicts_nothing_and_what_fits_goes_out() -> None:
    story = Story().opened(window=196_608, reserve=4_096, trigger={"ratio": 0.8})
    story.compacts(192_000, 192_000, reported="persist_failed", summarizer={"calls": 0})
    assert story.state.compactions.recent[-1].outcome == "durability_failed"
    assert Guard(196_608, 4_096).check(192_000).ok
    policy = LatchPolicy(window=196_608)
    after = policy.after_attempt(
        None, outcome="durability_failed", calls=0, key="h", tokens=192_000
    )
    assert after is None
    story.reply(192_000)
    assert "summarizer_failing" not in story.codes()


@covers("Q08")
def test_a_trigger_met_exactly_starts_nothing() -> None:
    assert not crosses(800, 800, inclusive=False)
    prompt = Prompt(800)
    assert Guard(WINDOW, RESERVE).before_send(prompt.count, prompt.compact).ok
    assert prompt.counts == 1
    story = Story().opened(window=WINDOW, trigger={"tokens": 800}).reply(800).reply(800)
    assert "over_trigger" not in story.codes()


@covers("Q09")
def test_a_refusal_leaves_a_pending_call_where_it_is() -> None:
    items = (said("u", 60, "user"), called("c", "open", tokens=900))
    history = History(0, 0, 0, (), (), Topic("t", items))
    plan = plan_fallback(history, target=760, count=per_four)
    assert plan.outcome == "nothing_foldable"
    assert apply_plan(history, plan) == history
    assert not Guard(WINDOW, RESERVE).check(history.total()).ok


@covers("Q12")
def test_what_the_provider_counts_is_the_load_and_not_the_agent_s_60_percent() -> None:
    story = Story().opened(window=196_608, trigger={"ratio": 0.8})
    story.turn().reply(100_000, local=60_000).empty(196_602, local=117_961)
    row = story.row
    assert (row.load.value, row.load.source) == (196_602, "provider")
    assert row.budget == budget_of(196_608, 4_096, None) == 192_512
    assert row.headroom.budget == 192_512 - 196_602
    assert row.calibration is not None and round(row.calibration, 2) == 0.60
    assert {"silent_empty", "over_budget", "undercount"} <= story.codes()


def results(turns: int, tokens: int = 30) -> list[Topic]:
    """Completed turns of one tool result each."""
    return [tool_turn(f"t{n}", 1, tokens) for n in range(turns)]


def touched(history: History, target: int) -> list[tuple[int, int]]:
    plan = plan_fallback(history, target=target, count=per_four, rules=NO_CUTS)
    return [(step.level, len(step.touched)) for step in plan.steps]


@covers("Q13", "Q14", "Q18")
@pytest.mark.parametrize(("case", "turns", "folded"), [("Q13", 7, 2), ("Q14", 7, 2), ("Q18", 8, 3)])
def test_old_results_become_pointers_in_one_step_and_the_newest_five_stay(
    case: str, turns: int, folded: int
) -> None:
    history = History(0, 0, 0, (), tuple(results(turns, 400)), turn("now", 30, 30))
    pointers = folded * (400 - 24)
    target = history.total() - pointers + 20 * folded
    plan = plan_fallback(history, target=target, count=per_four, rules=NO_CUTS)
    assert plan.outcome == "fell_back"
    assert [(step.level, len(step.touched)) for step in plan.steps] == [(2, folded)]
    kept = {f"t{n}.r0" for n in range(folded, turns)}
    assert kept <= set(plan.kept_verbatim)


@covers("Q13", "Q14", "Q15")
@pytest.mark.parametrize(
    ("case", "before", "after", "steps"),
    [
        ("Q13", 900, 730, [{"step": "prune", "before": 900, "after": 730, "calls": 0}]),
        ("Q14", 900, 790, [{"step": "prune", "before": 900, "after": 790, "calls": 0}]),
        ("Q15", 900, 300, [{"step": "summary", "before": 810, "after": 300, "calls": 1}]),
    ],
)  # fmt: skip
def test_what_it_frees_is_reduced_and_relieved_by_the_next_request(
    case: str, before: int, after: int, steps: list[dict[str, Any]]
) -> None:
    story = Story().opened(window=WINDOW, reserve=RESERVE, trigger={"ratio": 0.8})
    story.reply(before).compacts(before, after, steps=steps).reply(after)
    attempt = story.state.compactions.recent[-1]
    assert (attempt.outcome, attempt.freed, attempt.relief) == (
        "reduced",
        before - after,
        "relieved",
    )


@covers("Q15")
def test_where_pointers_are_not_enough_whole_turns_follow() -> None:
    history = History(0, 0, 0, (), tuple(results(7, 400)), turn("now", 30, 30))
    assert [level for level, _ in touched(history, 700)][:2] == [2, 3]


@covers("Q19")
def test_an_active_turn_with_nothing_to_fold_is_left_alone_again_and_again() -> None:
    items = (said("u", 500, "user"), called("c", "open", tokens=100))
    history = History(0, 0, 0, (), (), Topic("t", items))
    for _ in range(2):
        plan = plan_fallback(history, target=100, count=per_four)
        assert (plan.outcome, plan.steps) == ("nothing_foldable", ())
        assert apply_plan(history, plan) == history


@covers("Q20")
def test_in_the_active_turn_the_oldest_acknowledged_results_go_and_five_stay() -> None:
    history = History(0, 0, 0, (), (), tool_turn("now", 7, 400))
    plan = plan_fallback(history, target=history.total() - 700, count=per_four)
    assert [(step.level, len(step.touched)) for step in plan.steps] == [(6, 2)]
    assert {f"now.r{n}" for n in range(2, 7)} <= set(plan.kept_verbatim)


@covers("Q21")
def test_unread_results_never_become_pointers() -> None:
    history = History(0, 0, 0, (), (), tool_turn("now", 7, 140, read=False))
    plan = plan_fallback(history, target=history.total() - 100, count=per_four)
    assert all(step.step != "prune" for step in plan.steps)
    assert sent_ids(apply_plan(history, plan)) == sent_ids(history)
    prompt = Prompt(980)
    assert not Guard(WINDOW, RESERVE).before_send(prompt.count, prompt.compact).ok


@covers("Q23")
def test_once_older_turns_were_enough_the_active_one_stays_verbatim() -> None:
    history = History(0, 0, 0, (), tuple(results(9, 400)), tool_turn("now", 6, 400))
    plan = plan_fallback(history, target=4_500, count=per_four)
    assert plan.outcome == "fell_back"
    assert set(sent_ids(History(0, 0, 0, (), (), history.current))) <= set(plan.kept_verbatim)


@covers("Q24")
@pytest.mark.parametrize(
    ("after", "removed", "relief", "outcome"),
    [
        (150_000, ["m1"], "unconfirmed", "reduced"),
        (190_000, ["m1"], "not_relieved", "reduced"),
        (195_000, [], "not_relieved", "no_progress"),
    ],
)
def test_a_rescue_after_an_overflow_counts_by_what_it_took_away(
    after: int, removed: list[str], relief: str, outcome: str
) -> None:
    story = Story().opened().message(id="m1").turn().fails("overflow", stated_prompt=195_000)
    steps = [{"step": "prune", "before": 195_000, "after": after, "calls": 0}]
    story.compacts(195_000, after, trigger="reactive", removed=removed, steps=steps)
    attempt = story.state.compactions.recent[-1]
    assert (attempt.outcome, attempt.relief) == (outcome, relief)


@covers("Q25", "Q27")
def test_the_live_request_stays_and_an_old_user_message_goes_with_its_reply() -> None:
    history = History(
        0, 0, 0, (), (turn("first", 60, 60), turn("old", 60, 3_000)), tool_turn("now", 2, 60)
    )
    plan = plan_fallback(history, target=900, count=per_four, rules=NO_CUTS)
    left = sent_ids(apply_plan(history, plan))
    assert "now.u" in left and "first.u" in left
    assert {"old.u", "old.a"}.isdisjoint(left)


@covers("Q26")
def test_a_continuation_of_the_framework_does_not_become_the_anchor() -> None:
    stub = Item("stub", "system", "text", 9, "Continue, the reply was empty.")
    items = (said("real", 80, "user"), said("a", 3_000), stub)
    history = History(0, 0, 0, (), (turn("old", 400, 400),), Topic("now", items))
    assert history.last_user_message is not None and history.last_user_message.id == "real"
    plan = plan_fallback(history, target=900, count=per_four)
    assert "real" in plan.kept_verbatim
    story = Story().opened().turn().message(80, id="real")
    story.message(9, id="stub", role="system")
    story.compacts(190_000, 40_000, removed=["m9"])
    assert "lost_tail" not in story.codes()


@covers("Q28")
def test_without_a_stored_backup_nothing_is_taken_out() -> None:
    def fails(document: dict[str, object]) -> None:
        raise OSError("disk full")

    history = History(0, 0, 0, (), tuple(results(9, 400)), turn("now", 30, 30))
    with pytest.raises(OSError, match="disk full"):
        fall_back(history, target=900, save=fails, command_id="c", at_ms=1, count=per_four)


@covers("Q29", "Q30", "Q31", "Q32", "Q34")
@pytest.mark.parametrize(
    ("case", "after", "steps", "summarizer", "outcome", "cls"),
    [
        ("Q29", 300, None, {"calls": 2, "input": 900, "output": 80}, "reduced", None),
        ("Q30", 300, ["evict"], {"calls": 2, "error": "malformed"}, "fell_back", None),
        ("Q30", 900, None, {"calls": 2, "error": "malformed"}, "summarizer_failed", "malformed"),
        ("Q31", 900, None, {"calls": 1, "error": "timeout"}, "summarizer_failed", "timeout"),
        ("Q32", 900, None, {"calls": 1, "error": "provider"}, "summarizer_failed", "provider"),
        ("Q34", 900, None, {"calls": 1, "output": 0}, "summarizer_failed", "empty"),
        ("Q34", 900, None, {"calls": 1, "error": "malformed"}, "summarizer_failed", "malformed"),
        ("Q34", 500, ["fallback"], {"calls": 1, "error": "provider"}, "fell_back", None),
    ],
)
def test_a_summary_s_fate_is_told_by_its_last_call_and_by_what_was_freed(
    case: str,
    after: int,
    steps: list[str] | None,
    summarizer: dict[str, Any],
    outcome: str,
    cls: str | None,
) -> None:
    ran = None if steps is None else [{"step": step, "calls": 0} for step in steps]
    story = Story().opened(window=WINDOW, reserve=RESERVE, trigger={"ratio": 0.8})
    story.compacts(900, after, steps=ran, summarizer=summarizer)
    attempt = story.state.compactions.recent[-1]
    assert (attempt.outcome, attempt.error_class) == (outcome, cls)
    assert attempt.lossy is (True if outcome == "fell_back" else None)


@covers("Q33")
@pytest.mark.parametrize(("wanted", "fires"), [(5_840, False), (6_000, False), (6_001, True)])
def test_a_summary_request_leaves_room_for_its_own_answer(wanted: int, fires: bool) -> None:
    story = Story().opened(utility={"model": "u", "window": 8_000})
    story.say("request.sent", request="s", purpose="utility", local=wanted, max_output=2_000)
    assert ("summary_reserve" in story.codes()) is fires


@covers("Q36", "Q37", "Q38", "Q39", "Q40", "Q41", "Q42", "Q44")
@pytest.mark.parametrize(
    ("case", "before", "reply", "waiting", "action", "empties"),
    [
        ("Q36", Episode(), Reply(""), True, "recover_and_retry", 1),
        ("Q37", Episode(1, True), Reply(""), True, "warn", 2),
        ("Q38", Episode(1, True), Reply(calls=1), True, "pass", 0),
        ("Q39", Episode(1, True), Reply(thinking=True), True, "pass", 0),
        ("Q40", Episode(), Reply(), True, "recover_and_retry", 1),
        # A blank text passes there; it shows the user nothing, so here it does not.
        ("Q41", Episode(), Reply(" "), True, "recover_and_retry", 1),
        # That the recovery raised changes nothing: the retry follows from the reply alone.
        ("Q42", Episode(), Reply(""), True, "recover_and_retry", 1),
        ("Q44", Episode(), Reply(""), False, "warn", 1),
    ],
)
def test_an_empty_reply_is_retried_once_and_then_said_aloud(
    case: str, before: Episode, reply: Reply, waiting: bool, action: str, empties: int
) -> None:
    episode, verdict = judge_reply(before, reply, waiting_user=waiting)
    assert (verdict.action, episode.empties) == (action, empties)
    assert bool(verdict.continuation) is (action == "recover_and_retry")
    assert bool(verdict.warning) is (action == "warn")


@covers("Q37", "Q38", "Q39", "Q41")
def test_the_same_replies_seen_from_outside() -> None:
    story = Story().opened().turn().empty(50_000)
    assert story.severity("silent_empty") == "warning"
    story.empty(50_100)
    assert story.severity("silent_empty") == "critical"
    story.reply(50_200, content={"tool_calls": 1})
    assert "silent_empty" not in story.codes()
    story.reply(50_300, content={"thinking_chars": 90}).ends("silent")
    assert story.severity("nothing_visible") == "info"
    blank = Story().opened().turn().reply(50_000, content={"text_chars": 0})
    assert blank.row.empty_replies == 1
