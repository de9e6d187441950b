"""Agent Zero's cases: a history trigger, a cascade that needs its utility model, a repair loop."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxhealth.engine import (
    AttemptFacts,
    Bulk,
    History,
    Item,
    KeepRules,
    Topic,
    apply_plan,
    backup_document,
    classify_outcome,
    default_target,
    plan_fallback,
)
from tests.core.story import MINUTE, Story
from tests.engine.histories import per_four, said, sent_ids, turn

from .cases import covers

LONG = 4_000


def agent(limit: int, **facts: Any) -> Story:
    """A chat whose trigger is its history above ``limit``."""
    trigger = {"tokens": limit, "scope": "history"}
    return Story().opened(trigger=trigger, history_limit=limit, system=4_000, tools=2_000, **facts)


def passes(story: Story, before: int, after: int, **fields: Any) -> Story:
    return story.compacts(before, after, scope="history", **fields)


@covers("A01", "A05")
def test_a_pass_that_changes_nothing_is_no_progress_whatever_it_returns() -> None:
    story = agent(1_000).turn()
    steps = [{"step": "attention", "before": 1_234, "after": 1_234, "calls": 1}]
    passes(
        story, 1_234, 1_234, reported="stalled", steps=steps, summarizer={"calls": 1, "output": 50}
    )
    attempt = story.state.compactions.recent[-1]
    assert (attempt.outcome, attempt.relief) == ("no_progress", "not_relieved")


@covers("A02")
def test_64_passes_of_one_token_each_are_one_finding() -> None:
    story = agent(1_500).turn()
    for size in range(2_000, 2_000 - 64, -1):
        passes(story, size, size - 1, steps=[{"step": "attention", "calls": 1}])
    assert story.state.compactions.finished == 64
    trouble = {"stalled", "looping"} & story.codes()
    assert trouble
    opened = [view for view in story.changes.findings.values() if view.code in trouble]
    assert len(opened) == len(trouble)
    assert story.row.severity == "critical"


@covers("A04")
def test_passes_that_end_below_the_limit_are_relief() -> None:
    story = agent(34_834).turn()
    passes(story, 37_789, 32_789, summarizer={"calls": 1, "output": 300})
    story.say("history.snapshot", revision="r", history=32_789).reply(40_000).ends()
    assert story.state.compactions.recent[-1].relief == "relieved"
    assert story.codes() == {"near_trigger"}


@covers("A06", "A07")
def test_a_utility_model_that_times_out_is_its_failure_and_not_the_chat_s_end() -> None:
    story = agent(140_000).turn()
    passes(
        story,
        140_261,
        140_261,
        reported="stalled",
        reason="Utility model call timed out after 180s",
        summarizer={"calls": 1, "error": "timeout"},
    )
    attempt = story.state.compactions.recent[-1]
    assert (attempt.outcome, attempt.error_class) == ("summarizer_failed", "timeout")
    assert story.severity("summarizer_failing") == "warning"
    assert "stopped" not in story.codes()


@covers("A09", "A13")
def test_a_backup_keeps_the_raw_texts_also_with_half_a_character() -> None:
    item = Item("u", "user", "text", 9, "half \ud83d here")
    history = History(0, 0, 0, (), (), Topic("t", (item,)))
    document = backup_document(history, "cmd", 1)
    assert json.loads(json.dumps(document))["history"] == history.to_dict()


@covers("A15")
def test_a_topic_with_two_long_messages_is_cut_around_a_marker_without_a_model() -> None:
    items = (said("open", 20, "user"), said("a", LONG), said("b", LONG), said("close", 20))
    history = History(0, 0, 0, (), (Topic("t", items),), turn("now", 20, 20))
    plan = plan_fallback(history, target=2_000, count=per_four, rules=KeepRules(turns=2))
    after = apply_plan(history, plan)
    assert plan.outcome == "fell_back" and plan.lossy
    assert sent_ids(after)[:4] == ["open", "a", "b", "close"]
    text = next(item.text for item in after.sent_items() if item.id == "a")
    assert text is not None and "characters cut by fallback compaction" in text
    facts = AttemptFacts(before=plan.before, after=plan.after, calls=1, error="other", lossy=True)
    assert classify_outcome(facts)[0] == "fell_back"


@covers("A16")
def test_a_bulk_whose_summary_is_blank_gets_an_extract_instead() -> None:
    bulk = Bulk("b", 0, "", 1, (said("x", LONG), said("y", LONG)))
    history = History(0, 0, 0, (bulk,), (), turn("now", 20, 20))
    rules = KeepRules(large_in_current=1.0, large_in_topics=1.0)
    plan = plan_fallback(history, target=3_000, count=per_four, rules=rules)
    after = apply_plan(history, plan)
    assert after.total() <= 3_000 < history.total()
    shown = [entry.text or "" for entry in after.bulks]
    assert any("cut by fallback compaction" in text and len(text) <= 2_000 for text in shown)


@covers("A17")
def test_no_bulks_to_merge_is_nothing_to_do_and_no_error() -> None:
    history = History(0, 0, 0, (), (), Topic("t", (said("u", 400, "user"),)))
    plan = plan_fallback(history, target=100, count=per_four)
    assert (plan.outcome, plan.steps) == ("nothing_foldable", ())


@covers("A18")
def test_replies_that_are_unusable_up_to_the_limit_stop_the_agent_and_are_counted() -> None:
    story = agent(140_000).turn()
    for _ in range(2):
        story.empty(50_000)
    story.say("agent.stopped", reason="empty replies", count=2, limit=2).ends("stopped")
    assert story.is_ == "stopped"
    assert story.severity("stopped") == "critical"
    assert story.row.empty_replies == 2


@covers("A19")
def test_a_repeated_reply_is_unusable_and_thinking_alone_is_seen() -> None:
    story = agent(140_000).turn()
    for _ in range(3):
        story.reply(50_000).message(None, role="assistant", unusable="repeated")
    assert story.row.unusable_replies == 3
    thinking = agent(140_000).turn().reply(50_000, content={"thinking_chars": 40}).ends("silent")
    assert "nothing_visible" in thinking.codes()


@covers("A22")
def test_a_history_limit_stands_behind_what_else_is_in_the_prompt() -> None:
    story = Story().opened(window=65_536, history_limit=45_875, system=20_000, tools=5_000)
    assert story.row.trigger.on_strip == 70_875
    target = default_target(
        history_limit=45_875, budget=65_536 - 3_276, beside=25_000, scope="history"
    )
    assert target == int(0.8 * (65_536 - 3_276 - 25_000))
    assert target + 25_000 <= 0.9 * 65_536


@covers("A23")
def test_the_newest_message_survives_whatever_has_to_go() -> None:
    topics = tuple(turn(f"t{n}", 200, 800) for n in range(8))
    history = History(0, 0, 0, (), topics, turn("now", 200, 800))
    after = apply_plan(history, plan_fallback(history, target=700, count=per_four))
    assert "now.u" in sent_ids(after)
    assert any(bulk.text for bulk in after.bulks)


@covers("A24")
def test_a_system_prompt_that_is_too_big_alone_is_said_and_nothing_of_it_is_dropped() -> None:
    history = History(9_000, 0, 0, (), (), Topic("now", (said("u", 40, "user"),)))
    plan = plan_fallback(history, target=8_000, scope="prompt", count=per_four)
    assert plan.outcome == "nothing_foldable"
    assert (plan.floor, apply_plan(history, plan)) == (9_040, history)
    story = Story().opened(window=8_192, reserve=192, system=9_000, tools=0)
    assert story.severity("floor_exceeds_budget") == "critical"


@covers("A26")
def test_a_summary_request_above_the_utility_model_s_window_is_named() -> None:
    story = agent(140_000, utility={"model": "u", "window": 128_000})
    story.say("request.sent", request="s", purpose="utility", local=128_001)
    assert story.severity("summarizer_too_small") == "warning"


@covers("A27")
def test_a_request_without_an_answer_hangs_and_an_idle_chat_never_does() -> None:
    story = agent(140_000).turn()
    story.ask(local=9_000)
    story.tick_when_due()
    assert story.severity("hung") == "critical"
    idle = agent(140_000).turn().reply(9_000).ends()
    idle.tick(after=600 * MINUTE)
    assert idle.codes() == set()


@covers("A29")
def test_a_ratio_is_a_trigger_of_the_window() -> None:
    story = Story().opened(window=500_000, trigger={"ratio": 0.65})
    assert story.row.trigger.value == 325_000


@covers("A30")
def test_under_the_limit_nothing_is_done_and_nothing_is_wrong() -> None:
    story = passes(agent(89_600).turn(), 6_008, 6_008, summarizer={"calls": 0})
    assert story.state.compactions.recent[-1].outcome == "not_needed"
    assert story.codes() == set()


@covers("A31", "A32", "A33", "A34", "A36", "A37", "A38")
@pytest.mark.parametrize(
    ("case", "before", "after", "facts", "outcome", "flags"),
    [
        ("A31", 206_297, 11_943, {"calls": 11}, "reduced", ("over_compacted",)),
        ("A32", 183_340, 11_916, {"calls": 15}, "reduced", ("over_compacted",)),
        ("A33", 109_730, 32_982, {"calls": 3}, "reduced", ("over_compacted",)),
        ("A34", 206_297, 206_297, {"calls": 1, "error": "other"}, "summarizer_failed", ()),
        ("A36", 206_297, 223_306, {"calls": 3}, "grew", ()),
        ("A37", 121_790, 99_790, {"calls": 1}, "reduced", ()),
        ("A38", 143_920, 38_455, {"calls": 0}, "reduced", ()),
    ],
)
def test_the_cascade_s_runs_by_what_they_left(
    case: str, before: int, after: int, facts: dict[str, Any], outcome: str, flags: tuple[str, ...]
) -> None:
    given = AttemptFacts(
        before=before, after=after, before_scope="history", after_scope="history",
        trigger=89_600, trigger_scope="history", target=71_680, **facts,
    )  # fmt: skip
    assert classify_outcome(given) == (outcome, flags)


@covers("A35", "A40")
@pytest.mark.parametrize(("before", "after"), [(206_297, 206_297), (183_340, 45_932)])
def test_an_empty_summary_that_replaced_content_is_emptied_whatever_was_freed(
    before: int, after: int
) -> None:
    story = agent(89_600).turn()
    passes(
        story, before, after, reported="ok", emptied=True,
        summarizer={"calls": 1, "input": 9_000, "output": 0},
    )  # fmt: skip
    attempt = story.state.compactions.recent[-1]
    assert attempt.outcome == "summarizer_failed"
    assert "emptied" in attempt.flags
    assert story.severity("emptied") == "critical"


@covers("A37")
def test_a_reduction_that_stays_above_the_limit_is_no_relief() -> None:
    story = agent(89_600).turn()
    passes(story, 121_790, 99_790, summarizer={"calls": 1, "output": 400})
    story.say("history.snapshot", revision="r", history=99_790).reply(106_000)
    assert story.state.compactions.recent[-1].relief == "not_relieved"


@covers("A38")
def test_two_huge_messages_are_cut_although_the_utility_model_is_dead() -> None:
    items = (said("u", 20, "user"), said("a", 71_950), said("b", 71_950))
    history = History(0, 0, 0, (), (), Topic("now", items))
    plan = plan_fallback(history, target=71_680, count=per_four)
    assert plan.before == 143_920 and plan.after <= 71_680
    assert {step.step for step in plan.steps} == {"large_message"}


@covers("A39")
def test_an_image_becomes_a_line_of_a_few_tokens() -> None:
    image = Item("i", "tool", "image", 1_500, None)
    topics = (Topic("old", (said("q", 20, "user"), image, said("a", 20))), turn("mid", 20, 20))
    history = History(0, 0, 0, (), topics, turn("now", 20, 20))
    after = apply_plan(history, plan_fallback(history, target=200, count=per_four))
    assert after.total() <= 200
    assert all(item.tokens < 100 for item in after.sent_items())
