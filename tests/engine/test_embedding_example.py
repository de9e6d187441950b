"""The example agent of docs/embedding.md, taken from the page and run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ctxhealth.engine as engine
from ctxhealth.engine import Episode, History, Reply, history_from_backup

PAGE = Path(__file__).parents[2] / "docs" / "embedding.md"
LIMIT = 32_768 - 1_638
Make = Callable[..., Any]


def _code() -> str:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    return str(blocks[0])


@pytest.fixture
def make(tmp_path: Path) -> Make:
    space: dict[str, Any] = {"__name__": "example"}
    exec(compile(_code(), str(PAGE), "exec"), space)

    def agent(ask: Callable[[History], Reply], summarize: Callable[[object], str]) -> Any:
        return space["Agent"](ask, summarize, tmp_path)

    return agent


def _long_answer(history: History) -> Reply:
    return Reply(
        "what was found in the files, line by line. " * 200, prompt=history.total("prompt")
    )


def _no_quota(topics: object) -> str:
    raise PermissionError("no quota")


def test_with_a_dead_summarizer_every_turn_is_answered_within_the_budget(
    make: Make, tmp_path: Path
) -> None:
    asked: list[int] = []
    calls: list[int] = []

    def ask(history: History) -> Reply:
        asked.append(history.total("prompt"))
        return _long_answer(history)

    def summarize(topics: object) -> str:
        calls.append(asked[-1])
        return _no_quota(topics)

    agent = make(ask, summarize)
    answers = [agent.turn(f"Question {n}: what is in the next file?") for n in range(40)]
    assert all(answer.startswith("what was found") for answer in answers)
    assert max(asked) <= LIMIT
    assert 1 <= len(calls) < 10
    assert agent.history.head_anchor.text.startswith("Question 0")
    assert agent.history.last_user_message.text.startswith("Question 39")
    backups = sorted(tmp_path.iterdir())
    assert backups
    before = history_from_backup(json.loads(backups[0].read_text()))
    assert before.total("prompt") > agent.trigger


def test_a_summarizer_that_works_is_used_and_nothing_is_lost_to_a_fallback(
    make: Make, tmp_path: Path
) -> None:
    agent = make(_long_answer, lambda topics: f"{len(topics)} turns about files")
    for n in range(40):
        agent.turn(f"Question {n}")
    assert agent.history.bulks
    assert agent.latch is None
    assert not list(tmp_path.iterdir())


def test_empty_replies_end_in_one_retry_and_a_warning(make: Make) -> None:
    asked: list[int] = []

    def ask(history: History) -> Reply:
        asked.append(1)
        return Reply(prompt=history.total("prompt"), completion=0)

    agent = make(ask, _no_quota)
    answer = agent.turn("hello")
    assert len(asked) == 2
    assert "2 empty replies in a row" in answer
    assert agent.episode == Episode(2)


def test_a_message_that_cannot_fit_is_refused_before_any_call(make: Make) -> None:
    def ask(history: History) -> Reply:
        raise AssertionError("must not be asked")

    answer = make(ask, _no_quota).turn("word " * 40_000)
    assert answer.startswith("CONTEXT_UNFIT")
    assert f"{LIMIT:,}" in answer


def test_the_page_names_every_outcome_and_every_public_function() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for outcome in ("not_needed", "fell_back", "floor_exceeds_target", "nothing_foldable"):
        assert f"| `{outcome}` |" in page
    functions = [name for name in engine.__all__ if name[0].islower()]
    named = {"plan_fallback", "apply_plan", "fall_back", "default_target", "repair_pairs", "fits"}
    assert named <= set(functions)
    for name in named | {"judge_reply", "empty_cause", "classify_outcome", "history_from_backup"}:
        assert name in page
