"""Summarizer health: per utility model, what it did, what it cost, who waits on it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ctxhealth.store import queries
from tests.live.world import Agent, now

pytestmark = pytest.mark.django_db
GOOD = {"model": "small-1", "provider": "acme", "calls": 1, "input": 90_000, "output": 900}
BAD = {"model": "small-2", "provider": "acme", "calls": 2, "input": 100_000,
       "error": "quota", "detail": "over the monthly limit"}  # fmt: skip


def compacted(
    robot: Agent, chat: str, id: str, summarizer: dict[str, Any], after: int, **more: Any
) -> None:
    common = {"chat": chat, "attempt": id, "scope": "prompt", "before": 150_000}
    robot.report(
        {"type": "compaction.started", "trigger": "proactive", **common},
        {"type": "compaction.finished", "after": after, "summarizer": summarizer,
         "reported": "done", **common, **more},
    )  # fmt: skip


@pytest.fixture
def robot(db: None) -> Agent:
    return Agent()


def test_a_model_that_answers_has_calls_and_times_and_burns_nothing(robot: Agent) -> None:
    robot.chat("c1", 150_000)
    for number, took in enumerate((400, 900, 500)):
        compacted(robot, "c1", f"a{number}", GOOD, 60_000, ms=took)
    (row,) = queries.summarizer_health().rows
    assert (row.model, row.provider, row.attempts, row.calls) == ("small-1", "acme", 3, 3)
    assert (row.failed, row.burnt, row.median_ms, row.waiting_count) == (0, 0, 500, 0)
    assert not row.failing


def test_a_model_that_fails_says_by_what_how_often_and_who_waits(robot: Agent) -> None:
    for name in ("c1", "c2"):
        robot.chat(name, 195_000)
        compacted(robot, name, "a1", BAD, 150_000)
    robot.chat("c3", 150_000)
    compacted(robot, "c3", "a1", GOOD, 60_000)
    bad, good = queries.summarizer_health().rows
    assert (bad.model, good.model) == ("small-2", "small-1")
    assert (bad.failed, dict(bad.failures), bad.calls) == (2, {"quota": 2}, 4)
    assert bad.burnt == 200_000
    assert (bad.last_error_class, bad.last_error) == ("quota", "over the monthly limit")
    assert bad.waiting_count == 2
    assert {chat.title for chat in bad.waiting} == {"Chat c1", "Chat c2"}
    assert bad.failing and not good.failing


def test_a_chat_whose_newest_attempt_went_well_waits_no_more(robot: Agent) -> None:
    robot.chat("c1", 195_000)
    compacted(robot, "c1", "a1", BAD, 150_000)
    compacted(robot, "c1", "a2", {**BAD, "error": None, "detail": None}, 60_000)
    (row,) = queries.summarizer_health().rows
    assert (row.failed, row.waiting_count) == (1, 0)


def test_a_chat_that_ended_waits_for_nothing(robot: Agent) -> None:
    robot.chat("c1", 195_000)
    compacted(robot, "c1", "a1", BAD, 150_000)
    robot.report({"type": "chat.closed", "chat": "c1"})
    assert queries.summarizer_health().rows[0].waiting_count == 0


def test_what_a_failed_call_read_is_unknown_where_nobody_told(robot: Agent) -> None:
    robot.chat("c1", 195_000)
    compacted(robot, "c1", "a1", {"model": "small-3", "calls": 1, "error": "empty"}, 150_000)
    (row,) = queries.summarizer_health().rows
    assert (row.burnt, row.burnt_unknown) == (None, 1)


def test_attempts_without_a_summarizer_are_none_of_a_model(robot: Agent) -> None:
    robot.chat("c1", 150_000)
    compacted(robot, "c1", "a1", {"calls": 0}, 60_000)
    assert queries.summarizer_health().rows == []


def test_what_is_older_than_a_day_is_left_out(robot: Agent) -> None:
    robot.chat("c1", 150_000)
    compacted(robot, "c1", "a1", GOOD, 60_000)
    assert queries.summarizer_health(now=now() + 25 * 3_600_000).rows == []


def test_a_day_with_more_attempts_than_are_looked_at_says_so(
    robot: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxhealth.store.queries.summarizers.MOST", 3)
    robot.chat("c1", 150_000)
    for number in range(5):
        compacted(robot, "c1", f"a{number}", GOOD, 60_000)
    health = queries.summarizer_health()
    assert (health.cut, health.rows[0].attempts) == (True, 3)
    assert health.since > time.time() * 1000 - 60_000
