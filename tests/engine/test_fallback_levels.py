"""Each level of the fallback, and the numbers of the incidents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxhealth.engine import (
    Bulk,
    Cut,
    History,
    Item,
    KeepRules,
    Plan,
    StalePlan,
    Topic,
    apply_plan,
    default_target,
    plan_fallback,
)

from .histories import called, per_char, per_four, result, said, sent_ids, tool_turn, turn


def _levels(plan: Plan) -> list[tuple[int, str]]:
    return [(step.level, step.step) for step in plan.steps]


def _item(history: History, name: str) -> Item:
    return next(item for item in history.sent_items() if item.id == name)


# The incidents


def test_thirty_five_topics_above_the_limit_land_at_the_target() -> None:
    sizes = [206_297 // 35] * 34 + [206_297 - 34 * (206_297 // 35)]
    topics = [turn(f"t{n}", 2_000, size - 2_000) for n, size in enumerate(sizes)]
    history = History(9_000, 6_000, 0, (), tuple(topics[:-1]), topics[-1])
    target = default_target(history_limit=89_600)
    plan = plan_fallback(history, target=target, count=per_four)
    after = apply_plan(history, plan)
    assert (plan.before, plan.target, plan.outcome) == (206_297, 71_680, "fell_back")
    assert after.total() == plan.after <= 71_680
    assert after.current is history.current
    assert _item(after, "t0.u") is history.topics[0].items[0]
    assert _levels(plan) == [(3, "topics_to_bulk")]
    assert plan.after > 71_680 // 2


def test_forty_thousand_tokens_land_below_a_limit_of_thirty_thousand() -> None:
    topics = [tool_turn(f"t{n}", 2, 1_500) for n in range(12)]
    size = sum(topic.tokens for topic in topics)
    current = turn("now", 40, 40_081 - size - 40)
    history = History(5_000, 4_000, 0, (), tuple(topics), current)
    plan = plan_fallback(history, target=default_target(history_limit=30_000), count=per_four)
    assert plan.before == 40_081
    assert plan.after <= 24_000


def test_an_anchor_with_one_tool_pair_has_nothing_to_fold() -> None:
    items = (said("anchor", 400, "user"), called("c", "x"), result("r", "x", 50))
    history = History(0, 0, 0, (), (), Topic("t", items))
    plan = plan_fallback(history, target=300, count=per_four)
    assert (plan.outcome, plan.after, plan.floor) == ("nothing_foldable", 470, 470)
    assert apply_plan(history, plan) == history
    assert "470 tokens, target 300" in plan.sentence


def test_two_huge_messages_are_cut_without_a_model() -> None:
    current = Topic("now", (said("u", 20, "user"), said("a", 71_950), said("b", 71_950)))
    plan = plan_fallback(History(0, 0, 0, (), (), current), target=71_680, count=per_four)
    assert plan.before == 143_920
    assert _levels(plan) == [(1, "large_message")]
    assert 71_000 < plan.after <= 71_680


def test_one_huge_summary_is_shortened() -> None:
    huge = Bulk("b", 55_001, "a fact. " * 27_500, 20)
    history = History(0, 0, 0, (huge,), (turn("t1", 30, 30),), turn("t2", 30, 30))
    plan = plan_fallback(history, target=30_000, count=per_four)
    after = apply_plan(history, plan)
    assert _levels(plan) == [(4, "bulk_merge")]
    assert after.bulks[0].records == 20
    assert len(after.bulks[0].text or "") <= 2_000


def test_empty_summaries_are_extracted_and_their_anchor_stays() -> None:
    """The summarizer answered nothing: bulks without a text, their topics still sent."""
    records = [tuple(turn(f"old{n}", 30, 700).items) for n in range(3)]
    bulks = tuple(Bulk(f"b{n}", 0, "", 3, items) for n, items in enumerate(records))
    history = History(0, 0, 0, bulks, (), turn("now", 30, 30))
    plan = plan_fallback(history, target=1_000, count=per_four)
    after = apply_plan(history, plan)
    assert plan.outcome == "fell_back"
    assert _item(after, "old0.u") is records[0][0]
    assert all((bulk.text or "").strip() for bulk in after.bulks)


def test_no_bulks_and_no_topics_are_no_error() -> None:
    history = History(50, 50, 0)
    plan = plan_fallback(history, target=0)
    assert (plan.outcome, plan.steps) == ("not_needed", ())
    assert plan_fallback(history, target=10, scope="prompt").outcome == "nothing_foldable"


# Level 1


def test_a_message_just_above_its_share_really_shrinks() -> None:
    """Between 1.00 and 1.15 x its share a message was rewritten and grew from 444 to 448."""
    topics = tuple(turn(f"t{n}", 10, 444) for n in range(14))
    history = History(0, 0, 0, (), topics, turn("now", 10, 10))
    plan = plan_fallback(history, target=5_600, count=per_four)
    assert _levels(plan)[0] == (1, "large_message")
    *most, last = plan.steps[0].cuts
    assert {cut.before for cut in plan.steps[0].cuts} == {444}
    assert max(cut.after for cut in most) <= 336
    assert last.after < 444
    assert plan.outcome == "fell_back"


def test_large_is_a_quarter_of_the_target_in_the_current_topic_and_six_percent_before() -> None:
    now = Topic("now", (said("u", 10, "user"), said("a", 2_600), said("b", 2_400)))
    past = Topic("past", (said("p", 10, "user"), said("c", 650), said("d", 550)))
    first = Topic("first", (said("f", 9_000, "user"),))
    plan = plan_fallback(History(0, 0, 0, (), (first, past), now), target=10_000, count=per_four)
    assert plan.steps[0].level == 1
    assert plan.steps[0].touched == ("a", "c")
    assert [cut.after <= limit for cut, limit in zip(plan.cut, (2_500, 600), strict=False)]


def test_a_message_is_cut_no_more_than_is_needed() -> None:
    now = Topic("now", (said("u", 10, "user"), said("a", 9_000)))
    plan = plan_fallback(History(0, 0, 0, (), (), now), target=8_000, count=per_four)
    assert 7_950 <= plan.after <= 8_000


def test_a_cut_keeps_head_and_tail_around_a_marker_that_says_how_much() -> None:
    text = "H" * 30_000 + "T" * 30_000
    now = Topic("now", (said("u", 10, "user"), Item("a", "assistant", "text", 15_000, text)))
    plan = plan_fallback(History(0, 0, 0, (), (), now), target=5_000, count=per_four)
    short = _item(apply_plan(History(0, 0, 0, (), (), now), plan), "a").text or ""
    head, marker, tail = short.split("\n")
    assert marker.startswith("[... ") and marker.endswith(" cut by fallback compaction ...]")
    assert set(head) == {"H"} and set(tail) == {"T"}
    assert len(head) / (len(head) + len(tail)) == pytest.approx(0.6, abs=0.01)
    cut = int(marker.split()[1].replace(",", ""))
    assert cut == 60_000 - len(head) - len(tail)
    assert " of 60,000 characters" in marker


def test_a_dense_head_is_cut_until_it_really_fits() -> None:
    """The first part counts eight times as much as the rest: one guess is not enough."""

    def count(text: str) -> int:
        return sum(2 if char == "数" else 1 for char in text) // 4 + text.count("数")

    text = "数" * 4_000 + "x" * 36_000
    item = Item("a", "assistant", "text", count(text), text)
    history = History(0, 0, 0, (), (), Topic("now", (said("u", 1, "user"), item)))
    plan = plan_fallback(history, target=2_000, count=count)
    after = apply_plan(history, plan)
    assert plan.after <= 2_000
    assert count(_item(after, "a").text or "") == _item(after, "a").tokens


@pytest.mark.parametrize("kind", ["reasoning", "tool_call"])
def test_what_a_provider_parses_or_signs_is_never_cut(kind: str) -> None:
    big = replace(said("a", 9_000), kind=kind, calls=("c",) if kind == "tool_call" else ())
    items = (said("u", 10, "user"), big, result("r", "c", 20))
    history = History(0, 0, 0, (), (), Topic("now", items))
    assert plan_fallback(history, target=500, count=per_four).outcome == "nothing_foldable"


def test_a_closed_call_may_be_cut_where_the_rules_allow() -> None:
    items = (said("u", 10, "user"), called("a", "c", tokens=9_000), result("r", "c", 20))
    history = History(0, 0, 0, (), (), Topic("now", items))
    plan = plan_fallback(history, target=500, rules=KeepRules(cut_calls=True), count=per_four)
    after = apply_plan(history, plan)
    assert plan.outcome == "fell_back"
    assert _item(after, "a").calls == ("c",)


def test_an_image_becomes_one_line_not_a_piece_of_an_image() -> None:
    image = Item("img", "tool", "image", 1_500, name="screenshot")
    items = (said("u", 10, "user"), image, said("a", 30))
    history = History(0, 0, 0, (), (), Topic("now", items))
    after = apply_plan(history, plan_fallback(history, target=100, count=per_four))
    line = _item(after, "img")
    assert line.kind == "text"
    assert line.text == "[removed by fallback compaction: image of screenshot, 1,500 tokens]"


# Level 2


def test_old_results_become_pointers_and_the_newest_five_stay() -> None:
    past = [tool_turn(f"t{n}", 1, 500) for n in range(7)]
    history = History(0, 0, 0, (), tuple(past), turn("now", 10, 10))
    rules = KeepRules(large_in_topics=1.0)
    plan = plan_fallback(history, target=history.total() - 600, rules=rules, count=per_four)
    after = apply_plan(history, plan)
    assert [(step.level, step.touched) for step in plan.steps] == [(2, ("t0.r0", "t1.r0"))]
    pointer = _item(after, "t0.r0")
    assert pointer.text == (
        "[removed by fallback compaction: tool result of shell, 500 tokens, 2,000 characters]"
    )
    assert pointer.answers == ("t0.0",)
    assert _item(after, "t2.r0") == past[2].items[2]


def test_pointers_are_made_oldest_first_and_only_as_many_as_needed() -> None:
    past = [tool_turn(f"t{n}", 1, 300) for n in range(20)]
    history = History(0, 0, 0, (), tuple(past), turn("now", 10, 10))
    plan = plan_fallback(history, target=history.total() - 500, count=per_four)
    assert _levels(plan) == [(2, "prune")]
    assert plan.steps[0].touched == ("t0.r0", "t1.r0")


def test_a_result_that_a_pointer_would_not_shrink_is_left_alone() -> None:
    past = [tool_turn(f"t{n}", 1, 15) for n in range(9)]
    history = History(0, 0, 0, (), tuple(past), turn("now", 10, 10))
    plan = plan_fallback(history, target=history.total() - 10, count=per_four)
    assert 2 not in {step.level for step in plan.steps}


def test_unread_results_are_not_turned_into_pointers() -> None:
    past = [tool_turn(f"t{n}", 1, 300, read=n > 2) for n in range(20)]
    history = History(0, 0, 0, (), tuple(past), turn("now", 10, 10))
    plan = plan_fallback(history, target=history.total() - 500, count=per_four)
    assert plan.steps[0].touched == ("t3.r0", "t4.r0")


# Level 3


def test_the_oldest_topics_become_bulks_of_at_most_two_thousand_characters() -> None:
    past = [turn(f"t{n}", 20, 2_000) for n in range(4)]
    history = History(0, 0, 0, (), tuple(past), turn("now", 10, 10))
    rules = KeepRules(large_in_topics=1.0)
    plan = plan_fallback(history, target=5_500, rules=rules, count=per_four)
    after = apply_plan(history, plan)
    assert _levels(plan) == [(3, "topics_to_bulk")]
    assert plan.steps[0].touched == ("t0", "t1")
    assert [bulk.id for bulk in after.bulks] == ["fallback:t0", "fallback:t1"]
    assert [topic.id for topic in after.topics] == ["t0", "t2", "t3"]
    assert after.topics[0].items == past[0].items[:1]
    for bulk in after.bulks:
        assert 1_900 < len(bulk.text or "") <= 2_000
        assert "characters cut by fallback compaction" in (bulk.text or "")
        assert bulk.tokens == per_four(bulk.text or "")


def test_a_topic_of_blanks_gives_a_bulk_that_says_so() -> None:
    blank = Topic("t0", (Item("a", "assistant", "text", 90, "  \n"),))
    history = History(0, 0, 0, (), (blank,), turn("now", 10, 10))
    after = apply_plan(history, plan_fallback(history, target=40, count=per_four))
    assert after.bulks == (Bulk("fallback:t0", 3, "(no content)"),)


def test_an_extract_tells_who_said_what_under_the_title() -> None:
    items = (said("u", 2, "user"), *tool_turn("t", 1, 900).items[1:])
    past = Topic("t0", items, "Look at the files")
    history = History(0, 0, 0, (), (turn("first", 5, 5), past), turn("now", 10, 10))
    rules = KeepRules(large_in_topics=1.0)
    plan = plan_fallback(history, target=600, rules=rules, count=per_four)
    text = apply_plan(history, plan).bulks[-1].text or ""
    assert text.startswith("assistant: first.a says")
    assert "\nLook at the files\nuser: u says" in text
    assert "\nshell: t.r0 says" in text


def test_topics_too_small_for_an_extract_share_one() -> None:
    past = [turn(f"t{n}", 10, 20) for n in range(300)]
    history = History(0, 0, 0, (), tuple(past), turn("now", 10, 10))
    plan = plan_fallback(history, target=5_000, count=per_four)
    after = apply_plan(history, plan)
    assert plan.outcome == "fell_back"
    assert _levels(plan) == [(3, "topics_to_bulk")]
    assert max(bulk.records for bulk in after.bulks) > 10
    assert plan.after > 2_500


def test_the_turns_that_the_rules_keep_are_not_folded() -> None:
    past = [turn(f"t{n}", 20, 2_000) for n in range(6)]
    history = History(0, 0, 0, (), tuple(past), turn("now", 10, 10))
    rules = KeepRules(turns=3, large_in_topics=1.0)
    plan = plan_fallback(history, target=5_000, rules=rules, count=per_four)
    after = apply_plan(history, plan)
    assert after.topics[-2:] == tuple(past[-2:])
    assert plan.outcome == "fell_back"


def test_without_a_current_topic_the_last_turn_counts_as_current() -> None:
    past = tuple(turn(f"t{n}", 20, 2_000) for n in range(3))
    history = History(0, 0, 0, (), past)
    rules = KeepRules(large_in_topics=1.0, large_in_current=1.0)
    plan = plan_fallback(history, target=3_100, rules=rules, count=per_four)
    assert apply_plan(history, plan).topics[-1] is past[-1]


def test_a_pair_across_two_topics_leaves_with_the_later_one() -> None:
    first = Topic("t0", (said("u0", 20, "user"), said("a0", 900), called("c", "x", tokens=900)))
    second = Topic("t1", (result("r", "x", 900), said("a1", 900)))
    tail = (turn("t2", 10, 900), turn("now", 10, 10))
    history = History(0, 0, 0, (), (first, second, tail[0]), tail[1])
    rules = KeepRules(large_in_topics=1.0)
    only_first = plan_fallback(history, target=history.total() - 300, rules=rules, count=per_four)
    after = apply_plan(history, only_first)
    assert only_first.steps[0].touched == ("t0",)
    assert sent_ids(after)[:4] == ["u0", "c", "r", "a1"]
    both = plan_fallback(history, target=history.total() - 1_500, rules=rules, count=per_four)
    assert sent_ids(apply_plan(history, both))[:2] == ["u0", "t2.u"]


def test_an_open_call_keeps_its_message_and_the_results_of_its_siblings() -> None:
    items = (
        called("c", "x", "y", tokens=50),
        result("rx", "x", 60),
        said("a", 2_000),
    )
    history = History(0, 0, 0, (), (turn("t0", 9, 9), Topic("t1", items)), turn("now", 9, 9))
    after = apply_plan(history, plan_fallback(history, target=0, count=per_four))
    assert sent_ids(after) == ["t0.u", "c", "rx", "now.u", "now.a"]
    assert _item(after, "c") == items[0]


def test_an_unread_result_stays_with_its_call() -> None:
    past = (turn("t0", 9, 900), tool_turn("t1", 1, 60, read=False))
    history = History(0, 0, 0, (), past, turn("now", 9, 9))
    after = apply_plan(history, plan_fallback(history, target=0, count=per_four))
    assert sent_ids(after) == ["t0.u", "t1.c0", "t1.r0", "now.u", "now.a"]


def test_images_sent_with_the_last_user_message_stay_with_it() -> None:
    image = Item("img", "user", "image", 1_500)
    stray = Item("shot", "tool", "image", 1_500)
    now = Topic("now", (said("u", 10, "user"), image, said("a", 10), stray))
    history = History(0, 0, 0, (), (turn("t0", 10, 10),), now)
    after = apply_plan(history, plan_fallback(history, target=0, count=per_four))
    assert _item(after, "img") is image
    assert _item(after, "shot").kind == "text"


@pytest.mark.parametrize("order", ["ti", "it", "tii", "iti"])
def test_text_and_images_of_one_message_stay_together(order: str) -> None:
    parts = {"t": said("text", 300, "user"), "i": Item("img", "user", "image", 1_500)}
    items = tuple(replace(parts[part], id=f"{part}{n}") for n, part in enumerate(order))
    now = Topic("now", (said("earlier", 900, "user"), said("a", 10), *items, said("b", 10)))
    history = History(0, 0, 0, (), (turn("t0", 10, 10),), now)
    after = apply_plan(history, plan_fallback(history, target=0, count=per_four))
    for item in items:
        assert _item(after, item.id) is item
    assert _item(after, "earlier").tokens < 900


def test_a_pile_of_unanswered_messages_keeps_the_last_one_only() -> None:
    """Every turn died: the user wrote again and again."""
    pile = tuple(said(f"u{n}", 500, "user") for n in range(9))
    history = History(0, 0, 0, (), (turn("t0", 10, 10),), Topic("now", pile))
    plan = plan_fallback(history, target=2_000, count=per_four)
    assert plan.outcome == "fell_back"
    assert _item(apply_plan(history, plan), "u8") is pile[8]


def test_a_notice_of_the_framework_is_not_taken_for_the_users_message() -> None:
    notice = said("traceback", 1_956, "system")
    now = Topic("now", (said("u", 10, "user"), notice, said("traceback2", 1_956, "system")))
    history = History(0, 0, 0, (), (), now)
    plan = plan_fallback(history, target=1_000, count=per_four)
    assert plan.outcome == "fell_back"
    assert _item(apply_plan(history, plan), "u") is now.items[0]


def test_what_stayed_behind_can_be_folded_later_under_its_own_name() -> None:
    unread = result("r", "x", 900, read=False)
    past = Topic("t1", (said("a", 900), called("c", "x"), unread))
    history = History(0, 0, 0, (), (Topic("t0", (said("u", 10, "user"),)), past))
    history = replace(history, current=turn("now", 10, 10))
    rules = KeepRules(large_in_topics=1.0)
    first = apply_plan(history, plan_fallback(history, target=1_500, rules=rules, count=per_four))
    assert [bulk.id for bulk in first.bulks] == ["fallback:t1"]
    stayed = Topic("t1", (past.items[1], replace(unread, read=True)))
    later = replace(first, topics=(first.topics[0], stayed))
    plan = plan_fallback(later, target=1_100, rules=rules, count=per_four)
    ids = [bulk.id for bulk in apply_plan(later, plan).bulks]
    assert ids == ["fallback:t1", "fallback:t1~2"]


def test_an_empty_summary_is_replaced_where_it_stands() -> None:
    blank = Bulk("blank", 0, "", 1, (said("a", 900), said("b", 900)))
    bulks = (Bulk("b0", 30, "first"), blank, Bulk("b2", 30, "third"))
    history = History(0, 0, 0, bulks, (), turn("now", 10, 10))
    rules = KeepRules(large_in_topics=1.0)
    after = apply_plan(history, plan_fallback(history, target=900, rules=rules, count=per_four))
    assert [bulk.id for bulk in after.bulks] == ["b0", "fallback:blank", "b2"]


def test_what_an_empty_summary_leaves_behind_keeps_its_order() -> None:
    first = Bulk("b0", 0, "", 1, (said("u0", 10, "user"), said("a0", 2_000)))
    second = Bulk("b1", 0, "", 1, (said("u1", 10, "user"), said("a1", 500)))
    history = History(0, 0, 0, (first, second), (), turn("now", 10, 10))
    rules = KeepRules(large_in_topics=1.0)
    plan = plan_fallback(history, target=1_200, rules=rules, count=per_four)
    after = apply_plan(history, plan)
    assert sent_ids(after) == ["u0", "u1", "a1", "now.u", "now.a"]


# Levels 4 and 5


def _bulks(number: int, tokens: int = 480) -> tuple[Bulk, ...]:
    return tuple(
        Bulk(f"b{n}", tokens, said(f"b{n}", tokens).text, records=2) for n in range(number)
    )


def test_bulks_are_merged_in_threes_oldest_first() -> None:
    history = History(0, 0, 0, _bulks(7), (), turn("now", 10, 10))
    plan = plan_fallback(history, target=2_000, count=per_four)
    after = apply_plan(history, plan)
    assert _levels(plan) == [(4, "bulk_merge")]
    assert plan.steps[0].touched == ("b0", "b1", "b2", "b3", "b4", "b5")
    assert [bulk.records for bulk in after.bulks] == [6, 6, 2]
    for name in ("b0 says", "b1 says", "b2 says"):
        assert name in (after.bulks[0].text or "")


def test_evicted_bulks_leave_one_line_that_counts_them() -> None:
    history = History(0, 0, 0, _bulks(9), (), turn("now", 10, 10))
    plan = plan_fallback(history, target=60, count=per_four)
    after = apply_plan(history, plan)
    assert _levels(plan) == [(4, "bulk_merge"), (5, "evict")]
    assert plan.evicted == 18
    assert len(after.bulks) == 1
    assert after.bulks[0].text == (
        "[18 earlier parts of this chat were removed by fallback compaction]"
    )
    more = replace(after, bulks=(*after.bulks, *_bulks(1)))
    again = plan_fallback(more, target=60, count=per_four)
    assert again.evicted == 2
    assert apply_plan(more, again).bulks[0].records == 20


def test_only_as_many_bulks_are_merged_as_needed() -> None:
    history = History(0, 0, 0, _bulks(9), (), turn("now", 10, 10))
    plan = plan_fallback(history, target=history.total() - 800, count=per_four)
    assert _levels(plan) == [(4, "bulk_merge")]
    assert plan.steps[0].touched == ("b0", "b1", "b2")


def test_merged_bulks_are_merged_again_while_that_helps() -> None:
    history = History(0, 0, 0, _bulks(27), (), turn("now", 10, 10))
    plan = plan_fallback(history, target=2_000, count=per_four)
    assert _levels(plan) == [(4, "bulk_merge")]
    assert [bulk.records for bulk in apply_plan(history, plan).bulks] == [18, 18, 18]


def test_the_line_of_the_evicted_is_not_merged_away() -> None:
    line = Bulk("fallback:evicted", 17, "[18 earlier parts of this chat were removed]", 18)
    history = History(0, 0, 0, (line, *_bulks(3)), (), turn("now", 10, 10))
    plan = plan_fallback(history, target=700, count=per_four)
    assert _levels(plan) == [(4, "bulk_merge")]
    assert apply_plan(history, plan).bulks[0] is line


def test_only_as_many_bulks_are_evicted_as_needed() -> None:
    """Ten bulks of 100 tokens, which a merge would not shrink."""
    history = History(0, 0, 0, _bulks(10, 100), (), turn("now", 10, 10))
    plan = plan_fallback(history, target=720, count=per_four)
    assert _levels(plan) == [(5, "evict")]
    assert plan.steps[0].touched == ("b0", "b1", "b2", "b3")
    assert plan.evicted == 8
    assert [bulk.id for bulk in apply_plan(history, plan).bulks[1:]] == [
        f"b{n}" for n in range(4, 10)
    ]


# Level 6


def test_the_current_turn_gives_its_acknowledged_results_and_keeps_the_newest_five() -> None:
    now = tool_turn("now", 7, 300)
    history = History(0, 0, 0, (), (), now)
    plan = plan_fallback(history, target=history.total() - 400, count=per_four)
    assert _levels(plan) == [(6, "prune")]
    assert plan.steps[0].touched == ("now.r0", "now.r1")


def test_the_largest_items_are_lowered_to_one_height() -> None:
    sizes = {"a": 240, "b": 200, "c": 90}
    items = (said("u", 10, "user"), *(said(name, size) for name, size in sizes.items()))
    history = History(0, 0, 0, (), (), Topic("now", items))
    plan = plan_fallback(history, target=400, rules=KeepRules(large_in_current=1.0), count=per_four)
    after = apply_plan(history, plan)
    assert _levels(plan) == [(6, "large_message")]
    assert abs(_item(after, "a").tokens - _item(after, "b").tokens) <= 2
    assert _item(after, "c").tokens == 90


def test_what_cannot_be_shortened_does_not_hold_the_others_up() -> None:

    def count(text: str) -> int:
        """Count so that a short text with a marker is longer than the text without."""
        return len(text) + (300 if "z" in text and "[..." in text else 0)

    small = [Item(f"s{n}", "assistant", "text", 100, "z" * 100) for n in range(5)]
    items = (said("u", 1, "user"), Item("big", "assistant", "text", 3_000, "y" * 3_000), *small)
    history = History(0, 0, 0, (), (), Topic("now", items))
    rules = KeepRules(large_in_current=1.0)
    plan = plan_fallback(history, target=582, rules=rules, count=count)
    assert plan.outcome == "fell_back"
    assert plan.steps[-1].touched == ("big",)
    assert plan.cut == (Cut("big", 3_000, 81),)


def test_a_pointer_is_not_pointed_to_again() -> None:
    pairs = tool_turn("now", 3, 300).items[1:]
    now = Topic("now", (said("u", 5_000, "user"), *pairs))
    history = History(0, 0, 0, (), (), now)
    rules = KeepRules(results=0)
    plan = plan_fallback(history, target=4_000, rules=rules, count=per_char)
    after = apply_plan(history, plan)
    assert plan.steps[0].step == "prune"
    assert _item(after, "now.r0").text == (
        "[removed by fallback compaction: tool result of shell, 300 tokens, 1,200 characters]"
    )
    assert plan_fallback(after, target=4_000, rules=rules, count=per_char).steps == ()


def test_unread_results_are_cut_only_when_nothing_else_fits() -> None:
    items = (said("u", 10, "user"), called("c", "x"), result("r", "x", 2_000, read=False))
    with_other = Topic("now", (*items, said("a", 2_000)))
    history = History(0, 0, 0, (), (), with_other)
    first = plan_fallback(history, target=2_300, count=per_four)
    assert _item(apply_plan(history, first), "r") is items[2]
    second = plan_fallback(history, target=600, count=per_four)
    after = apply_plan(history, second)
    assert second.outcome == "fell_back"
    assert second.steps[-1].touched == ("r",)
    assert _item(after, "r").answers == ("x",)


def test_one_message_larger_than_the_window_gives_the_floor_with_both_numbers() -> None:
    now = Topic("now", (said("u", 50_000, "user"), said("a", 400)))
    plan = plan_fallback(History(0, 0, 0, (), (), now), target=8_000, count=per_four)
    assert plan.outcome == "floor_exceeds_target"
    assert plan.floor == plan.after > 50_000
    assert f"{plan.after:,}" in plan.sentence
    assert "8,000" in plan.sentence


# Sizes alone, scopes, errors


def test_a_cut_of_an_unknown_text_makes_the_plan_an_estimate() -> None:
    items = (said("u", 10, "user"), Item("a", "assistant", "text", 9_000))
    history = History(0, 0, 0, (), (), Topic("now", items))
    plan = plan_fallback(history, target=4_000, count=per_four)
    assert (_levels(plan), plan.exact) == ([(1, "large_message")], False)
    known = replace(history, current=Topic("now", (items[0], said("a", 9_000))))
    assert plan_fallback(known, target=4_000, count=per_four).exact


def test_sizes_alone_are_enough_and_the_plan_says_so() -> None:
    topics = tuple(
        Topic(
            f"t{n}",
            (Item(f"u{n}", "user", "text", 100), Item(f"a{n}", "assistant", "text", 5_900)),
        )
        for n in range(35)
    )
    history = History(0, 0, 0, (), topics[:-1], topics[-1])
    plan = plan_fallback(history, target=71_680)
    assert (plan.outcome, plan.exact) == ("fell_back", False)
    assert plan.after <= 71_680
    assert apply_plan(history, plan).total() == plan.after


def test_the_scope_of_the_prompt_counts_what_is_beside_the_history() -> None:
    history = History(3_000, 2_000, 500, (), (turn("t0", 10, 3_000),), turn("now", 10, 10))
    plan = plan_fallback(history, target=7_000, scope="prompt", count=per_four)
    assert plan.before == 8_530
    assert plan.after <= 7_000
    assert plan_fallback(history, target=7_000).outcome == "not_needed"


def test_a_plan_for_another_revision_is_refused() -> None:
    history = History(0, 0, 0, (), (turn("t0", 10, 900),), turn("now", 10, 10))
    plan = plan_fallback(history, target=300, count=per_four)
    newer = replace(history, current=turn("now", 10, 11))
    with pytest.raises(StalePlan, match="revision: planned for"):
        apply_plan(newer, plan)
    assert apply_plan(replace(history, extras=70), plan).extras == 70


@pytest.mark.parametrize("target", [-1, 1.5, True, None, "300"])
def test_a_target_that_is_no_size_is_refused(target: object) -> None:
    with pytest.raises(ValueError, match="target: must be an integer"):
        plan_fallback(History(), target=target)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [("turns", 0), ("results", -1), ("extract_chars", 10), ("merge", 1), ("head_share", 0)],
)
def test_rules_that_make_no_sense_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{name}: must be"):
        KeepRules(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "target"),
    [
        ({"history_limit": 140_000}, 112_000),
        ({"history_limit": 89_600}, 71_680),
        ({"history_limit": 35}, 28),
        ({"history_limit": 100, "budget": 120, "beside": 40}, 64),
        ({"history_limit": 100, "budget": 120}, 80),
        ({"trigger": 90, "trigger_scope": "history", "history_limit": 100}, 72),
        ({"budget": 30, "beside": 40}, 0),
        ({"scope": "prompt", "budget": 192_512, "trigger": 157_286}, 125_828),
        ({"scope": "prompt", "history_limit": 1_000, "beside": 500, "budget": 9_000}, 1_200),
    ],
)
def test_the_default_target_is_four_fifths_of_the_smallest_limit_in_one_scope(
    limits: dict[str, object], target: int
) -> None:
    assert default_target(**limits) == target  # type: ignore[arg-type]


def test_a_default_target_without_a_limit_in_its_scope_is_refused() -> None:
    with pytest.raises(ValueError, match="target: no limit is known in the scope 'history'"):
        default_target(budget=100)
