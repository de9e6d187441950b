"""A failed request in the fold: what its text says where the agent states nothing itself."""

from __future__ import annotations

import pytest

from .story import Story

ANTHROPIC = "prompt is too long: 213462 tokens > 200000 maximum"
WITH_OUTPUT = (
    "This model's maximum context length is 131072 tokens. However, you requested 131509 tokens "
    "(99509 in the messages, 32000 in the completion)."
)


@pytest.mark.parametrize("error", ["overflow", "invalid", "other", "provider", "too_large"])
def test_the_text_alone_makes_it_an_overflow_with_its_numbers(error: str) -> None:
    story = Story().opened(window=None, model="test-model").reply(180_000)
    story.fails(error, status=400, detail=ANTHROPIC)
    assert story.severity("over_window") == "critical"
    assert "213,462 of 200,000" in story.finding("over_window").sentence
    assert (story.row.window.value, story.row.window.source) == (200_000, "evidence")
    assert (story.row.load.value, story.row.load.source) == (213_462, "error")
    assert "bytes_limit" not in story.codes()


@pytest.mark.parametrize("error", ["rate_limit", "quota", "auth", "timeout", "network", "filtered"])
def test_an_agent_that_names_another_reason_is_believed(error: str) -> None:
    story = Story().opened().reply(180_000).fails(error, detail=ANTHROPIC)
    assert "over_window" not in story.codes()
    assert story.row.load.value == 180_000


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        (429, "Rate limit reached: too many tokens per minute"),
        (400, "Completion has too many tokens; maximum context length is 8192 tokens"),
        (400, "File size exceeds the limit"),
        (400, "something is wrong with the context"),
    ],
)
def test_a_veto_leaves_it_what_the_agent_called_it(status: int, detail: str) -> None:
    story = Story().opened().reply(50_000).fails("invalid", status=status, detail=detail)
    assert "over_window" not in story.codes()
    assert story.row.window.value == 200_000


def test_the_agent_s_own_numbers_come_before_the_text_s() -> None:
    story = (
        Story()
        .opened()
        .fails("overflow", detail=ANTHROPIC, stated_window=190_000, stated_prompt=195_000)
    )
    assert story.row.window.value == 190_000
    assert story.row.load.value == 195_000


def test_an_agent_s_word_without_any_number_is_still_an_overflow() -> None:
    story = Story().opened().reply(150_000).fails("overflow", detail="no idea")
    assert story.severity("over_window") == "critical"
    assert story.row.window.value == 200_000
    assert story.row.load.value == 150_000


def test_two_stated_numbers_that_do_not_fit_are_one_whatever_it_is_called() -> None:
    story = Story().opened().fails("other", stated_window=940_000, stated_prompt=941_200)
    assert "over_window" in story.codes()
    story = Story().opened().fails("other", stated_window=940_000, stated_prompt=9_000)
    assert "over_window" not in story.codes()


def test_c47_the_answer_s_reserve_is_what_does_not_fit() -> None:
    """99,509 + 32,000 against 131,072: 437 over, although the prompt alone is at 76%."""
    story = Story().opened(window=131_072).reply(120_000)
    story.compacts(120_000, 99_509)
    story.fails("invalid", status=400, detail=WITH_OUTPUT)
    assert story.row.reserve == 32_000
    assert story.row.budget == 99_072
    assert story.row.headroom.budget == -437
    assert "437 above the window of 131,072" in story.finding("over_window").sentence
    assert story.severity("over_budget") == "critical"


def test_c48_the_parts_of_the_sum_are_told_apart() -> None:
    text = (
        "This endpoint's maximum context length is 256000 tokens. However, you requested about "
        "256493 tokens (194895 of text input, 10398 of tool input, 51200 in the output)."
    )
    story = Story().opened(window=256_000).fails("provider", status=400, detail=text)
    assert story.row.load.value == 194_895 + 10_398
    assert "493 above the window" in story.finding("over_window").sentence


def test_c51_a_400_that_was_filed_as_any_other_teaches_the_limit() -> None:
    story = Story().opened(window=1_000_000, trigger={"tokens": 968_000}).reply(930_000)
    story.fails("invalid", status=400, detail="prompt is too long: 941200 tokens > 940000 maximum")
    assert story.row.window.value == 940_000
    assert story.severity("trigger_unreachable") == "warning"


def test_c41_the_error_counts_where_the_meter_says_nothing() -> None:
    text = (
        "This model's maximum context length is 1048576 tokens. However, you requested 1048599 "
        "tokens (1048599 in the messages, 0 in the completion)."
    )
    story = Story().opened(window=1_048_576).fails("invalid", status=400, detail=text)
    assert story.row.headroom.window == -23
    assert story.is_ == "over"


def test_a_limit_that_is_a_known_maximum_input_is_no_dispute_about_the_window() -> None:
    text = (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
        "290001 tokens."
    )
    story = Story().say("chat.opened", model="gpt-5").fails("invalid", status=400, detail=text)
    assert story.row.window.value == 400_000
    assert story.row.budget == 272_000
    assert story.row.headroom.budget == 272_000 - 290_001
    assert "window_conflict" not in story.codes()


def test_an_answered_request_ends_it() -> None:
    story = Story().opened(window=131_072).fails("invalid", status=400, detail=WITH_OUTPUT)
    story.compacts(99_509, 40_000, trigger="reactive").reply(40_200)
    assert "over_window" not in story.codes()
    assert story.state.requests.overflow_output is None


def test_a_stated_limit_settles_what_was_only_known_from_below() -> None:
    story = Story().opened(window=200_000).reply(198_000)
    story.message(20_000).reply(219_313)
    assert story.row.window.at_least
    story.fails("overflow", stated_window=400_000, stated_prompt=401_000)
    window = story.row.window
    assert (window.value, window.at_least, window.source) == (400_000, False, "evidence")


def test_a_larger_accepted_request_takes_a_stated_limit_back() -> None:
    story = Story().opened(window=200_000, trigger={"tokens": 180_000}).reply(160_000)
    story.fails("overflow", stated_window=170_000, stated_prompt=171_000)
    assert "trigger_unreachable" in story.codes()
    story.message(15_000).reply(176_000)
    assert (story.row.window.value, story.row.window.source) == (200_000, "evidence")
    assert {"trigger_unreachable", "over_window", "meter_unreliable"}.isdisjoint(story.codes())


def test_a_summarizer_s_text_tells_its_overflow_from_other_failures() -> None:
    summarizer = {"calls": 1, "error": "provider", "detail": ANTHROPIC}
    story = Story().opened().compacts(180_000, 180_000, summarizer=summarizer)
    assert story.state.compactions.recent[-1].error_class == "overflow"
    summarizer = {"calls": 1, "error": "provider", "detail": "502 Bad Gateway"}
    story.compacts(180_000, 180_000, summarizer=summarizer)
    assert story.state.compactions.recent[-1].error_class == "provider"


def test_the_sentence_names_the_limit_that_refused_the_prompt() -> None:
    text = (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
        "290001 tokens."
    )
    story = Story().say("chat.opened", model="gpt-5").fails("invalid", status=400, detail=text)
    assert "290,001 of 272,000 tokens" in story.finding("over_window").sentence
    story.fails("overflow", stated_prompt=410_000)
    assert "410,000 of 400,000 tokens" in story.finding("over_window").sentence
