"""Reasonix's cases: triggers and ceilings, the stuck state, the summarizer, telemetry."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.core.limits import crosses
from ctxhealth.engine import (
    Bulk,
    History,
    Latch,
    LatchPolicy,
    Topic,
    apply_plan,
    plan_fallback,
)
from ctxhealth.engine import (
    crosses as engine_crosses,
)
from tests.core.story import Story
from tests.engine.histories import per_four, said, tool_turn

from .cases import covers

# A window of 20,000 with a trigger of 16,000 and a ceiling 256 below the window.
POLICY = LatchPolicy(window=20_000, ceiling=19_744)
STUCK = Latch("summarizer", "h", 1, 16_500)
TRIGGER = {"ratio": 0.8, "inclusive": True}


@covers("R01")
@pytest.mark.parametrize("output", [131_072, 200_000])
def test_the_output_s_size_never_moves_the_trigger(output: int) -> None:
    story = Story().opened(window=128_000, reserve=256, trigger={"ratio": 0.85}, max_output=output)
    assert (story.row.trigger.value, story.row.budget) == (108_800, 127_744)
    story.ask(max_output=output)
    assert story.row.trigger.value == 108_800
    assert story.severity("reserve_exceeds_window") == "critical"


@covers("R02")
@pytest.mark.parametrize(
    ("prompt", "starts"), [(6_000, False), (7_000, False), (7_999, False), (8_500, True)]
)
def test_only_a_prompt_at_the_trigger_starts_a_fold(prompt: int, starts: bool) -> None:
    assert crosses(prompt, 8_000, inclusive=True) is starts
    assert engine_crosses(prompt, 8_000, inclusive=True) is starts
    story = Story().opened(window=10_000, trigger=TRIGGER).reply(prompt)
    assert (story.row.headroom.trigger is not None) and (
        (story.row.headroom.trigger <= 0) is starts
    )


@covers("R03")
def test_without_a_window_there_is_no_trigger() -> None:
    row = Story().say("chat.opened", trigger={"ratio": 0.8}).reply(9_000).row
    assert row.trigger.value is None or row.trigger.source != "declared"
    assert row.headroom.trigger is None


@covers("R04", "R11")
@pytest.mark.parametrize(("tokens", "why"), [(19_744, "at_ceiling"), (19_743, "latched")])
def test_at_the_ceiling_a_fold_runs_whatever_is_stuck(tokens: int, why: str) -> None:
    assert POLICY.may_attempt(STUCK, key="h", tokens=tokens).why == why


@covers("R05", "R12")
def test_a_region_too_small_to_fold_is_no_call_and_no_latch() -> None:
    latch = POLICY.after_attempt(None, outcome="nothing_foldable", calls=0, key="h", tokens=17_000)
    assert latch is None
    story = Story().opened(window=20_000, trigger=TRIGGER).turn()
    story.compacts(17_000, 17_000, reason="no_foldable_region", summarizer={"calls": 0})
    attempt = story.state.compactions.recent[-1]
    assert attempt.outcome == "nothing_foldable"
    assert story.row.latches == ()


@covers("R06")
def test_a_failed_summary_is_tried_once_also_after_a_restart() -> None:
    calls, latch = 0, None
    for attempt in range(3):
        if attempt == 2 and latch is not None:
            latch = Latch.from_dict(latch.to_dict())
        decision = POLICY.may_attempt(latch, key="h", tokens=17_000)
        if decision.allowed:
            calls += 1
            latch = POLICY.after_attempt(
                decision.latch, outcome="summarizer_failed", calls=1, key="h", tokens=17_000
            )
    assert calls == 1


@covers("R07")
def test_the_same_view_is_not_tried_and_a_changed_one_is() -> None:
    policy = LatchPolicy()
    assert not policy.may_attempt(STUCK, key="h", tokens=16_500).allowed
    assert policy.may_attempt(STUCK, key="new messages", tokens=16_700).allowed


@covers("R08")
def test_a_small_result_in_the_same_turn_is_no_reason_and_a_turn_s_growth_is() -> None:
    assert not POLICY.may_attempt(STUCK, key="one result", tokens=16_900).allowed
    assert POLICY.may_attempt(STUCK, key="turn 12", tokens=17_500).why == "released"


@covers("R10")
@pytest.mark.parametrize("tokens", [8_000, 11_000, 14_000])
def test_a_prompt_below_the_trigger_ends_it(tokens: int) -> None:
    assert POLICY.after_reading(STUCK, tokens=tokens, trigger=16_000) is None
    story = Story().opened(window=20_000, trigger=TRIGGER).turn()
    story.compacts(17_000, 17_000, summarizer={"calls": 1, "error": "timeout"})
    for _ in range(4):
        story.reply(17_100)
    assert [latch.kind for latch in story.row.latches] == ["inferred"]
    story.reply(tokens)
    assert story.row.latches == ()


@covers("R11")
def test_a_fold_that_lands_below_the_trigger_clears_and_the_next_pressure_folds_again() -> None:
    latch = POLICY.after_attempt(STUCK, outcome="reduced", calls=1, key="h2", tokens=19_800)
    assert latch is None
    assert POLICY.may_attempt(latch, key="h3", tokens=16_200).why == "open"


@covers("R13")
def test_an_overflow_with_a_dead_summarizer_leaves_the_view_and_says_both() -> None:
    story = Story().opened(window=20_000, trigger=TRIGGER).turn().reply(19_000)
    story.fails("overflow", stated_prompt=20_400)
    story.compacts(20_400, 20_400, trigger="reactive", summarizer={"calls": 1, "error": "network"})
    assert story.state.compactions.recent[-1].outcome == "summarizer_failed"
    assert story.row.load.value == 20_400
    assert story.severity("over_window") == "critical"
    assert story.severity("stalled") == "critical"


@covers("R14")
def test_below_the_ceiling_a_failed_summary_is_a_warning_and_the_turn_goes_on() -> None:
    story = Story().opened(window=20_000, trigger=TRIGGER).turn().reply(16_500)
    story.compacts(16_500, 16_500, summarizer={"calls": 1, "error": "network"})
    story.reply(16_700).ends()
    assert story.row.severity == "warning"
    assert story.severity("summarizer_failing") == "warning"


@covers("R16")
def test_a_cancelled_fold_installs_nothing_and_latches_nothing() -> None:
    assert POLICY.after_attempt(None, outcome="cancelled", calls=1, key="h", tokens=9) is None
    story = Story().opened(window=20_000, trigger=TRIGGER).reply(16_500)
    story.compacts(16_500, 16_500, reported="cancelled", summarizer={"calls": 1})
    assert story.state.compactions.recent[-1].outcome == "cancelled"
    assert story.row.load.value == 16_500


@covers("R18", "R19")
@pytest.mark.parametrize(
    ("case", "after", "summarizer", "outcome"),
    [
        ("R18", 6_000, {"calls": 2, "output": 400}, "reduced"),
        ("R18", 16_500, {"calls": 2, "output": 0}, "summarizer_failed"),
        ("R19", 6_000, {"calls": 2, "output": 400}, "reduced"),
        ("R19", 16_500, {"calls": 2, "error": "network"}, "summarizer_failed"),
    ],
)
def test_a_retried_call_counts_by_its_last_answer(
    case: str, after: int, summarizer: dict[str, Any], outcome: str
) -> None:
    story = Story().opened(window=20_000, trigger=TRIGGER)
    story.compacts(16_500, after, summarizer=summarizer)
    attempt = story.state.compactions.recent[-1]
    assert attempt.outcome == outcome
    assert attempt.summarizer is not None and attempt.summarizer.calls == 2


@covers("R21")
def test_an_overflow_without_numbers_teaches_neither_ratio_nor_window() -> None:
    story = Story().opened(window=20_000).reply(10_000, local=2_500)
    story.fails("overflow", detail="context length exceeded")
    assert story.row.calibration == 0.25
    assert (story.row.window.value, story.row.window.source) == (20_000, "agent")


@covers("R24")
def test_a_manual_fold_of_a_tiny_session_is_on_record_and_no_failure() -> None:
    story = Story().opened(window=20_000, trigger=TRIGGER).reply(900)
    story.compacts(900, 900, trigger="manual", reported="noop", summarizer={"calls": 0})
    assert story.row.compactions == 1
    assert story.state.compactions.recent[-1].outcome in ("not_needed", "nothing_foldable")
    assert story.is_ == "healthy"


@covers("R25")
def test_the_ratio_of_the_agent_s_count_is_known_and_its_excess_harmless() -> None:
    story = Story().opened(window=20_000)
    for _ in range(3):
        story.reply(2_000, local=2_500)
    assert story.row.calibration == 1.25
    assert {"overcount", "undercount"}.isdisjoint(story.codes())


@covers("R26")
@pytest.mark.parametrize(
    ("before", "after", "trigger"), [(850_000, 510_000, "proactive"), (100_000, 80_000, "manual")]
)
def test_a_real_reduction_is_one_however_it_began(before: int, after: int, trigger: str) -> None:
    story = Story().opened(window=1_000_000).reply(before).compacts(before, after, trigger=trigger)
    attempt = story.state.compactions.recent[-1]
    assert (attempt.outcome, attempt.freed, attempt.flags) == ("reduced", before - after, ())


@covers("R28")
def test_two_replays_of_one_request_are_its_load_once() -> None:
    story = Story().opened(window=100_000, trigger=TRIGGER)
    story.fails("network").fails("network").reply(40_000)
    assert story.row.load.value == 40_000
    assert story.row.headroom.trigger == 40_000


@covers("R29")
def test_folding_again_leaves_one_line_for_all_that_went() -> None:
    bulks = tuple(Bulk(f"b{n}", 500, "word " * 400) for n in range(6))
    now = Topic("now", (said("u", 60, "user"), said("a", 60)))
    history = History(0, 0, 0, bulks, (), now)
    first = apply_plan(history, plan_fallback(history, target=600, count=per_four))
    more = History(0, 0, 0, first.bulks, (*first.topics, tool_turn("t", 4, 400)), now)
    second = apply_plan(more, plan_fallback(more, target=180, count=per_four))
    lines = [bulk for bulk in second.bulks if "removed by fallback" in (bulk.text or "")]
    assert len(lines) == 1
