"""The ten rules that the public cases force on whoever reads a context's numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.story import Story
from tests.readers.session import Session, loads, read


def used(story: Story, **usage: Any) -> Story:
    return story.reply(None, usage={"dialect": "openai", "output": 10, **usage})


def test_1_the_load_is_the_last_request_and_never_a_running_total() -> None:
    story = Story().opened().turn()
    for prompt in (20_000, 30_000, 40_000):
        used(story, dialect="codex", input=prompt, total=sum(range(prompt)))
    assert story.row.load.value == 40_000


@pytest.mark.parametrize(
    ("dialect", "load"),
    [("anthropic", 154_992), ("openai", 12_000), ("codex", 12_000), ("gemini", 12_000),
     ("llamacpp", 12_000)],
)  # fmt: skip
def test_2_the_dialect_says_whether_the_cache_is_inside_the_input(dialect: str, load: int) -> None:
    story = Story().opened().turn()
    used(story, dialect=dialect, input=12_000, cache_read=142_000, cache_write=992)
    assert story.row.load.value == load


def test_3_rows_of_one_message_count_once() -> None:
    session = Session()
    session.turn("m1", 20_000)
    row = {**session.rows[-1], "uuid": "another row of the same message"}
    session.rows.append(row)
    reader, events = read(session.lines())
    assert loads(events) == [20_000]
    assert reader.counts["model.replied"] == 1


class Test4:
    def test_zero_parts_with_a_total_are_an_estimate(self) -> None:
        story = used(Story().opened().turn(), dialect="codex", input=0, output=0, total=940_499)
        assert (story.is_, story.row.load.reliable) == ("unreliable", False)

    def test_an_accepted_prompt_above_the_window_is_no_load(self) -> None:
        story = used(Story().opened().turn(), input=940_499)
        assert (story.is_, story.row.load.reliable) == ("unreliable", False)
        assert story.codes().isdisjoint({"over_window", "over_budget"})


def test_5_a_request_built_before_a_compaction_says_nothing_of_the_context_after_it() -> None:
    story = Story().opened().turn().reply(180_000)
    early = story.ask()
    story.compacts(180_000, 30_000).reply(181_000, request=early)
    assert story.row.load.source.value == "pending"
    assert story.state.compactions.recent[-1].relief.value == "unconfirmed"


def test_6_a_part_of_the_history_is_not_compared_with_the_whole_prompt() -> None:
    story = Story().opened().turn().compacts(404, 17_133, scope="history", after_scope="prompt")
    assert story.state.compactions.recent[-1].outcome.value == "not_comparable"
    assert "grew" not in story.codes()


@pytest.mark.parametrize(("prompt", "over"), [(186_000, False), (190_000, True)])
def test_7_what_can_be_sent_is_the_window_less_the_output(prompt: int, over: bool) -> None:
    """190,000 is 97% of the raw window and does not fit beside 10,000 of output."""
    story = Story().opened(window=196_608, reserve=10_000).turn().reply(prompt)
    assert ("over_budget" in story.codes()) is over


@pytest.mark.parametrize(("after", "word"), [(40_000, "relieved"), (155_000, "not_relieved")])
def test_8_a_compaction_that_says_ok_is_not_yet_relief(after: int, word: str) -> None:
    story = Story().opened(trigger={"tokens": 150_000}).turn().reply(160_000)
    story.compacts(160_000, 40_000, reported="ok")
    assert story.state.compactions.recent[-1].relief.value == "unconfirmed"
    story.reply(after)
    assert story.state.compactions.recent[-1].relief.value == word


@pytest.mark.parametrize(
    ("attempt", "latch", "load", "right", "clearing_is_wrong"),
    [
        ({"reported": "x", "reason": "nothing_to_fold", "summarizer": {"calls": 0}}, {},
         100_000, "clear_latch", False),
        ({"summarizer": {"calls": 1, "error": "timeout"}}, {}, 100_000, "compact_fallback", True),
        (None, {"kind": "lock_held", "holder": {"id": "24468", "alive": True}},
         100_000, "compact_fallback", True),
        (None, {"kind": "exhausted"}, 100_000, "clear_latch", False),
        (None, {"kind": "exhausted"}, 190_000, "compact_fallback", True),
        (None, {"kind": "cooldown", "release": {"until": 900_000}}, 100_000, "manual", True),
    ],
    ids=["nothing foldable", "summarizer failed", "lock held", "used up, load fine",
         "used up, load high", "timer runs"],
)  # fmt: skip
def test_9_each_latch_has_its_own_button(
    attempt: dict[str, Any] | None,
    latch: dict[str, Any],
    load: int,
    right: str,
    clearing_is_wrong: bool,
) -> None:
    story = Story().opened(trigger={"tokens": 150_000}).turn().reply(load)
    if attempt is not None:
        story.compacts(None, None, attempt="a", **attempt)
        latch = {**latch, "attempt": "a"}
    story.say("latch.set", latch="L", scope="chat", **latch)
    shown = story.page.latches[0]
    assert shown.recommended[0].action == right
    assert ("clear_latch" in {advice.action for advice in shown.discouraged}) is clearing_is_wrong


@pytest.mark.parametrize(
    ("prompt", "reply", "cause"),
    [
        (199_000, {}, "leaves no room"),
        (50_000, {"finish": "length", "content": {"thinking_chars": 900}}, "thinking used up"),
        (50_000, {}, "had room"),
        (None, {"usage": None}, "cause unknown"),
    ],
)
def test_10_an_empty_reply_has_its_cause_by_numbers_alone(
    prompt: int | None, reply: dict[str, Any], cause: str
) -> None:
    story = Story().opened().turn().empty(prompt, **reply)
    assert cause in story.finding("silent_empty").sentence


def test_10_a_reply_of_calls_alone_is_not_empty() -> None:
    story = Story().opened().turn().empty(50_000, content={"tool_calls": 1})
    assert "silent_empty" not in story.codes()
