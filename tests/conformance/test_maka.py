"""Maka's cases: estimates and windows, spans, outcomes and latches, overflow and retries."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.core.overflow import Overflow, parse_overflow
from ctxhealth.core.rules import Rules
from ctxhealth.core.windows import ModelWindow
from ctxhealth.engine import (
    Guard,
    History,
    Item,
    KeepRules,
    Latch,
    LatchPolicy,
    Topic,
    apply_plan,
    plan_fallback,
)
from tests.core.story import Story
from tests.engine.histories import called, per_four, result, said, sent_ids

from .cases import covers

TRIGGER = {"ratio": 0.8, "inclusive": True}


def small_row(model: str, provider: str | None) -> ModelWindow | None:
    return ModelWindow(8_192, None, None, "row") if model.startswith("small") else None


@covers("M01")
def test_the_next_prompt_is_the_last_count_and_what_was_added() -> None:
    story = Story().opened(window=500).reply(140)
    story.message(100)
    assert (story.row.load.value, story.row.projection) == (140, 240)


@covers("M04")
def test_without_an_earlier_count_the_agent_s_own_is_all_there_is() -> None:
    story = Story().opened()
    story.ask(local=200)
    assert (story.row.load.value, story.row.load.source) == (200, "local")


@covers("M05")
@pytest.mark.parametrize(
    ("load", "budget_finding", "window_finding"),
    [(100_000, False, False), (120_000, True, False), (130_000, False, True)],
)
def test_the_budget_and_the_window_are_two_lines(
    load: int, budget_finding: bool, window_finding: bool
) -> None:
    story = Story().opened(window=128_000, reserve=16_384).say("usage.update", used=load)
    assert story.row.budget == 111_616
    assert ("over_budget" in story.codes()) is budget_finding
    assert ("over_window" in story.codes()) is window_finding


@covers("M06", "M07")
@pytest.mark.parametrize(
    ("window", "reserve", "budget"), [(8_192, 2_048, 6_144), (256_000, 16_384, 239_616)]
)
def test_a_declared_reserve_gives_the_budget(window: int, reserve: int, budget: int) -> None:
    assert Story().opened(window=window, reserve=reserve).row.budget == budget
    assert Guard(window, reserve).check(budget).ok
    assert not Guard(window, reserve).check(budget + 1).ok


@covers("M08")
def test_an_unknown_window_is_no_number_instead_of_a_fallback() -> None:
    row = Story().say("chat.opened", model="nobody-knows").reply(47_000).row
    assert (row.window.value, row.budget, row.headroom.window) == (None, None, None)
    assert row.window.source == "unknown"


@covers("M10")
def test_a_declared_window_beats_the_model_s_row_until_it_is_gone() -> None:
    rules = Rules(lookup=small_row)
    story = Story(rules=rules).say("chat.opened", model="small-1", window=131_072, reserve=16_384)
    assert (story.row.window.source, story.row.budget) == ("agent", 114_688)
    story.say("chat.updated", model="small-2", reserve=2_048)
    assert (story.row.window.source, story.row.budget) == ("table", 6_144)


@covers("M11")
def test_the_load_is_the_input_alone() -> None:
    usage = {"dialect": "openai", "input": 300, "output": 380}
    story = Story().opened(window=500).reply(None, usage=usage)
    assert story.row.load.value == 300
    assert {"over_window", "over_budget"}.isdisjoint(story.codes())


@covers("M12")
def test_usage_that_is_missing_is_unknown_and_never_0() -> None:
    story = Story().opened(window=500).reply(None)
    assert (story.row.load.value, story.row.load.source) == (None, "unknown")


@covers("M14")
def test_without_a_window_nothing_is_forced() -> None:
    forced: list[int] = []
    assert Guard(None).before_send(lambda: 9_999_999, forced.append).ok
    assert forced == []


@covers("M15")
def test_after_a_fold_the_load_is_unknown_until_a_request_is_accepted() -> None:
    story = Story().opened().reply(170_000).compacts(170_000, 50_000)
    assert story.row.load.source == "pending"
    assert story.row.headroom.budget is None
    assert story.reply(50_300).row.load.source == "provider"


def one_pair() -> list[Item]:
    return [said("anchor", 100, "user"), called("c1", "1"), result("r1", "1", 900)]


@covers("M21")
def test_an_open_call_is_kept_and_its_latch_asks_for_a_repair() -> None:
    items = (said("anchor", 100, "user"), called("c", "open", tokens=900))
    history = History(0, 0, 0, (), (Topic("prior", (said("p", 60, "user"),)),), Topic("t", items))
    after = apply_plan(history, plan_fallback(history, target=300, count=per_four))
    assert "c" in sent_ids(after)
    story = Story().opened().say("latch.set", latch="l", kind="open_call", scope="chat")
    latch = story.page.latches[0]
    assert latch.justified is False
    assert latch.recommended[0].action == "repair_pairs"


@covers("M23")
def test_an_anchor_and_one_pair_offer_nothing_and_cost_no_call() -> None:
    story = Story().opened(trigger=TRIGGER).turn()
    story.compacts(
        166_000,
        166_000,
        reported="fail_open",
        reason="no_safe_completed_span",
        summarizer={"calls": 0},
    )
    attempt = story.state.compactions.recent[-1]
    assert attempt.outcome == "nothing_foldable"
    assert attempt.summarizer is not None and attempt.summarizer.calls == 0
    assert "summarizer_failing" not in story.codes()


@covers("M24", "M45")
def test_with_a_second_pair_the_same_chat_folds_and_no_latch_stands_in_the_way() -> None:
    policy = LatchPolicy(window=200_000, ceiling=190_000)
    latch = policy.after_attempt(
        None, outcome="nothing_foldable", calls=0, key="one pair", tokens=166_000
    )
    for cause in ("proactive", "overflow"):
        assert policy.may_attempt(latch, key="two pairs", tokens=167_000, cause=cause).allowed
    items = [*one_pair(), called("c2", "2"), result("r2", "2", 900)]
    history = History(0, 0, 0, (), (), Topic("t", tuple(items)))
    plan = plan_fallback(history, target=1_200, count=per_four, rules=KeepRules(results=1))
    assert plan.outcome == "fell_back"
    assert sent_ids(apply_plan(history, plan)) == ["anchor", "c1", "r1", "c2", "r2"]
    story = Story().opened(trigger=TRIGGER)
    story.compacts(190_000, 60_000, summarizer={"calls": 1, "input": 130_000, "output": 500})
    assert story.state.compactions.recent[-1].outcome == "reduced"


@covers("M45")
def test_a_structural_latch_is_called_unjustified_and_the_blocked_rescue_critical() -> None:
    story = Story().opened(trigger=TRIGGER).turn()
    story.compacts(
        166_000, 166_000, attempt="a", reason="no_safe_completed_span", summarizer={"calls": 0}
    )
    story.say("latch.set", latch="l", scope="turn", attempt="a", reason="no_safe_completed_span")
    assert story.severity("latched_unjustified") == "warning"
    story.fails("overflow", status=400)
    story.compacts(
        198_000, 198_000, trigger="reactive", reported="skipped", summarizer={"calls": 0}
    )
    assert story.severity("latched_unjustified") == "critical"


@covers("M27", "M40", "M41")
@pytest.mark.parametrize(
    ("case", "reported", "reason", "calls"),
    [
        ("M27", "fail_open", "head_anchor_not_durable", 0),
        ("M40", "write_failed", None, 1),
        ("M41", "fail_open", "ledger_read_failed", 0),
    ],
)
def test_a_ledger_that_fails_is_durability_and_never_latches(
    case: str, reported: str, reason: str | None, calls: int
) -> None:
    story = Story().opened(trigger=TRIGGER).turn()
    story.compacts(100_000, 100_000, reported=reported, reason=reason, summarizer={"calls": calls})
    assert story.state.compactions.recent[-1].outcome == "durability_failed"
    assert (
        LatchPolicy().after_attempt(
            None, outcome="durability_failed", calls=calls, key="h", tokens=1
        )
        is None
    )
    story.reply(100_200).ends()
    assert story.is_ == "healthy"


@covers("M27")
def test_an_anchor_that_only_a_plan_lacks_is_structural() -> None:
    story = Story().opened(trigger=TRIGGER)
    story.compacts(166_000, 166_000, reason="no_safe_completed_span", summarizer={"calls": 0})
    assert story.state.compactions.recent[-1].outcome == "nothing_foldable"


@covers("M28", "M29", "M30", "M31", "M32", "M33", "M34", "M42")
@pytest.mark.parametrize(
    ("case", "after", "summarizer", "outcome", "cls"),
    [
        ("M28", 180_000, {"calls": 1, "error": "other"}, "summarizer_failed", "other"),
        ("M29", 180_000, {"calls": 1, "error": "provider"}, "summarizer_failed", "provider"),
        ("M30", 180_000, {"calls": 1, "output": 0}, "summarizer_failed", "empty"),
        ("M31", 180_000, {"calls": 1, "error": "malformed"}, "summarizer_failed", "malformed"),
        ("M32", 180_000, {"calls": 1, "error": "truncated"}, "summarizer_failed", "truncated"),
        ("M33", 180_000, {"calls": 1, "error": "truncated"}, "summarizer_failed", "truncated"),
        ("M34", 180_000, {"calls": 1, "error": "malformed"}, "summarizer_failed", "malformed"),
        ("M34", 165_200, {"calls": 1, "input": 15_000, "output": 200}, "reduced", None),
        ("M42", 180_000, {"calls": 1, "input": 9_000, "output": 9_400}, "no_progress", None),
    ],
)
def test_a_summarizer_s_failure_keeps_its_class(
    case: str, after: int, summarizer: dict[str, Any], outcome: str, cls: str | None
) -> None:
    story = Story().opened(trigger=TRIGGER).turn()
    story.compacts(180_000, after, reported="fail_open", summarizer=summarizer)
    attempt = story.state.compactions.recent[-1]
    assert (attempt.outcome, attempt.error_class) == (outcome, cls)
    assert ("summarizer_failing" in story.codes()) is (outcome == "summarizer_failed")


@covers("M29")
def test_a_structural_word_after_a_call_is_still_the_summarizer_s_failure() -> None:
    story = Story().opened(trigger=TRIGGER)
    story.compacts(180_000, 180_000, reason="no_safe_completed_span", summarizer={"calls": 3})
    assert story.state.compactions.recent[-1].outcome == "summarizer_failed"


@covers("M35")
def test_a_refusal_before_any_call_is_not_the_summarizer_s() -> None:
    story = Story().opened(trigger=TRIGGER)
    story.compacts(
        180_000, 180_000, reported="failed", reason="input_too_large", summarizer={"calls": 0}
    )
    attempt = story.state.compactions.recent[-1]
    assert (attempt.outcome, attempt.error_class) == ("no_progress", None)
    assert "summarizer_failing" not in story.codes()


@covers("M36")
def test_an_oversized_result_becomes_a_line_and_its_pair_stays_whole() -> None:
    items = (said("u", 20, "user"), called("c", "1"), result("r", "1", 40_000))
    topics = (Topic("old", items),)
    history = History(0, 0, 0, (), topics, Topic("now", (said("q", 20, "user"),)))
    rules = KeepRules(results=0, large_in_topics=1.0)
    plan = plan_fallback(history, target=600, count=per_four, rules=rules)
    after = apply_plan(history, plan)
    assert plan.after <= 600
    assert [item.id for item in after.sent_items()][:3] == ["u", "c", "r"]
    text = next(item.text for item in after.sent_items() if item.id == "r")
    assert text is not None and len(text) <= 600 and "tool result of shell" in text


@covers("M37")
def test_nothing_foldable_over_the_budget_is_stalled_and_not_the_summarizer() -> None:
    story = Story().opened(window=120, reserve=20, trigger={"tokens": 90}).turn()
    story.say("usage.update", used=110)
    story.compacts(110, 110, reason="no_safe_completed_span", summarizer={"calls": 0})
    assert story.state.compactions.recent[-1].outcome == "nothing_foldable"
    assert story.severity("stalled") == "critical"
    assert "0 summarizer calls" in story.finding("stalled").sentence


@covers("M38")
def test_a_dead_summarizer_over_the_budget_is_stalled_for_that_reason() -> None:
    story = Story().opened(window=150, reserve=20, trigger={"tokens": 100}).turn()
    story.say("usage.update", used=140)
    story.compacts(140, 140, summarizer={"calls": 1, "error": "provider"})
    assert story.state.compactions.recent[-1].outcome == "summarizer_failed"
    assert story.severity("stalled") == "critical"
    assert story.severity("summarizer_failing") == "warning"


@covers("M39")
def test_an_anchor_larger_than_the_window_cannot_be_folded_away() -> None:
    items = (said("anchor", 1_200, "user"), said("a", 200))
    history = History(0, 0, 0, (), (), Topic("t", items))
    plan = plan_fallback(history, target=120, count=per_four)
    assert plan.outcome == "floor_exceeds_target"
    assert plan.floor is not None and plan.floor >= 1_200
    assert "anchor" in plan.kept_verbatim
    story = Story().opened(window=150, reserve=20)
    story.say("history.snapshot", revision="r", system=0, protected=1_200, history=1_400)
    assert story.severity("floor_exceeds_budget") == "critical"


@covers("M43")
def test_a_small_turn_needs_nothing() -> None:
    story = Story().opened(window=8_192, reserve=2_048, trigger={"tokens": 6_144})
    story.compacts(900, 900, summarizer={"calls": 0})
    assert story.state.compactions.recent[-1].outcome == "not_needed"
    assert story.codes() == set()


@covers("M44")
def test_a_user_who_stops_during_a_summary_is_no_failure() -> None:
    story = Story().opened(trigger=TRIGGER).turn()
    story.compacts(180_000, 180_000, reported="user_stop", summarizer={"calls": 1})
    assert story.state.compactions.recent[-1].outcome == "cancelled"
    story.ends("cancelled")
    assert {"stalled", "summarizer_failing", "stopped"}.isdisjoint(story.codes())


@covers("M46", "M47")
def test_a_failed_call_latches_by_its_input_and_a_changed_one_lets_it_go() -> None:
    policy = LatchPolicy()
    latch = policy.after_attempt(
        None, outcome="summarizer_failed", calls=1, key="fingerprint", tokens=180_000
    )
    assert latch == Latch("summarizer", "fingerprint", 1, 180_000)
    for _ in range(2):  # this turn, and the next with the same events
        assert not policy.may_attempt(latch, key="fingerprint", tokens=180_000).allowed
    assert policy.may_attempt(latch, key="changed", tokens=180_400).allowed


@covers("M49")
@pytest.mark.parametrize("reason", ["empty_history", "already_compacted"])
def test_a_manual_compaction_with_nothing_to_do_is_no_failure(reason: str) -> None:
    story = Story().opened(trigger=TRIGGER).reply(20_000)
    story.compacts(
        20_000, 20_000, trigger="manual", reported="unchanged", reason=reason,
        summarizer={"calls": 0},
    )  # fmt: skip
    assert story.state.compactions.recent[-1].outcome in ("not_needed", "nothing_foldable")
    assert story.is_ == "healthy"


@covers("M49")
def test_a_summarizer_that_is_not_wired_is_a_command_that_was_refused() -> None:
    story = Story().opened().reply(20_000).command("compact_summarize")
    story.say("command.progress", command="cmd1", state="refused", reason="operation_unavailable")
    assert story.state.commands["cmd1"].state == "refused"
    assert story.is_ == "healthy"


@covers("M50")
def test_an_overflow_one_fold_and_an_accepted_retry_are_relief() -> None:
    story = Story().opened(window=400, reserve=0).turn().fails("overflow", stated_window=400)
    assert story.is_ == "over"
    story.compacts(390, 210, trigger="reactive", summarizer={"calls": 1, "output": 9})
    story.reply(None, usage={"dialect": "openai", "input": 220, "output": 30, "total": 250}).ends()
    assert story.row.load.value == 220
    assert story.state.compactions.recent[-1].relief == "relieved"
    assert story.is_ == "healthy"


@covers("M51")
def test_a_second_overflow_after_the_fold_says_that_it_did_not_help() -> None:
    story = Story().opened(window=400, reserve=0).turn().fails("overflow")
    story.compacts(390, 210, trigger="reactive", summarizer={"calls": 1, "output": 9})
    story.fails("overflow").ends("error")
    assert story.state.compactions.recent[-1].relief == "not_relieved"
    assert story.severity("over_window") == "critical"


@covers("M52")
def test_an_overflow_without_anything_to_fold_keeps_its_own_name() -> None:
    story = Story().opened().turn().fails("overflow", detail="prompt is too long")
    story.compacts(
        199_000, 199_000, trigger="reactive", reason="no_safe_completed_span",
        summarizer={"calls": 0},
    )  # fmt: skip
    assert story.severity("over_window") == "critical"
    assert story.state.compactions.recent[-1].outcome == "nothing_foldable"


@covers("M54")
def test_another_400_is_no_overflow() -> None:
    story = Story().opened().reply(150_000)
    story.fails("invalid", status=400, detail="temperature: must be at most 2")
    assert "over_window" not in story.codes()


@covers("M55")
def test_images_that_are_left_out_first_cost_no_call() -> None:
    story = Story().opened().turn().fails("overflow", stated_prompt=230_000)
    steps = [{"step": "prune", "before": 230_000, "after": 90_000, "calls": 0}]
    story.compacts(230_000, 90_000, trigger="reactive", steps=steps)
    attempt = story.state.compactions.recent[-1]
    assert (attempt.outcome, attempt.freed) == ("reduced", 140_000)


@covers("M57")
def test_a_rate_limit_and_its_retry_are_no_trouble_of_the_context() -> None:
    story = Story().opened().turn()
    story.fails("rate_limit", status=429, detail="retry-after: 1 ms").reply(50_000).ends()
    assert story.codes() == set()


@covers("M58")
def test_an_overflow_s_text_states_prompt_and_window() -> None:
    text = "prompt is too long: 213462 tokens > 200000 maximum"
    assert parse_overflow(400, None, text) == Overflow(200_000, 213_462, None, "prompt")


@covers("M60", "M61")
@pytest.mark.parametrize(
    "text",
    [
        "rate limit: context length exceeded",
        "ThrottlingException: input is too long for requested model",
        "quota exceeded: maximum context length is 8192 tokens",
        "completion has too many tokens, exceeds the context window",
        "file size exceeds the limit",
    ],
)
def test_a_veto_beats_a_sentence_about_capacity_and_a_code_beats_the_veto(text: str) -> None:
    assert parse_overflow(400, None, text) is None
    assert parse_overflow(400, "context_length_exceeded", text) is not None
