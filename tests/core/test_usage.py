"""Usage dialects: the load of one request, never a sum, never a guess."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctxhealth.core.usage import Counted, count_usage
from ctxhealth.wire.parts import Usage

from .story import Story


def count(**usage: Any) -> Counted:
    return count_usage(msgspec.convert(usage, Usage))


def test_anthropic_adds_cache_reads_and_writes_to_the_input() -> None:
    given = count(dialect="anthropic", input=8, cache_read=154_000, cache_write=984, output=60)
    assert given.prompt == 154_992


@pytest.mark.parametrize("dialect", ["openai", "codex", "gemini", "llamacpp", "otel"])
def test_elsewhere_the_cache_is_inside_the_input(dialect: str) -> None:
    assert count(dialect=dialect, input=12_207, cache_read=2_558).prompt == 12_207


def test_the_last_message_pass_is_the_load_where_compaction_ran_inside_the_reply() -> None:
    passes = [
        {"type": "compaction", "input": 180_000},
        {"type": "message", "input": 23_000, "cache_read": 5},
        {"type": "compaction", "input": 99},
    ]
    assert count(dialect="anthropic", input=203_000, iterations=passes).prompt == 23_005


def test_all_zero_usage_is_no_reading() -> None:
    assert count(dialect="openai", input=0, output=0, total=0) == Counted(None, None)


def test_missing_input_is_unknown_and_not_zero() -> None:
    assert count(dialect="anthropic", output=5).prompt is None
    assert count_usage(None).prompt is None


def test_zero_parts_with_a_total_are_an_estimate() -> None:
    given = count(dialect="codex", input=0, output=0, total=940_499)
    assert given.prompt == 940_499
    assert given.doubt is not None


def test_an_estimate_is_shown_as_unreliable_and_alarms_nobody() -> None:
    story = Story().opened(window=258_400).turn()
    story.reply(212_134)
    story.reply(None, usage={"dialect": "codex", "input": 0, "output": 0, "total": 940_499})
    row = story.row
    assert (row.load.value, row.load.reliable) == (940_499, False)
    assert story.codes() == {"meter_unreliable"}
    assert row.headroom.budget is None
    assert row.trend[-1] is None
    story.reply(48_687)
    assert story.row.load.reliable
    assert "meter_unreliable" not in story.codes()


def test_a_synthetic_row_is_neither_a_load_nor_an_empty_reply() -> None:
    story = Story().opened().reply(50_000)
    story.say("model.replied", request="s", synthetic=True, content={"text_chars": 0})
    assert story.row.load.value == 50_000
    assert story.row.empty_replies == 0
    assert story.row.last_reply_at is not None and story.row.last_reply_at < story.at
    assert story.row.requests == 2


def test_a_summarizer_s_usage_never_enters_the_chat_s_load() -> None:
    story = Story().opened().reply(50_000)
    story.say("request.sent", request="u", purpose="utility", local=9_000)
    story.say(
        "model.replied", request="u", usage={"dialect": "openai", "input": 9_000, "output": 9}
    )
    assert story.row.load.value == 50_000
    assert story.row.requests == 1
