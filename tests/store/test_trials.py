"""What another threshold would have flagged in the last day."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import Event
from ctxhealth.store.through import submit_inline
from ctxhealth.store.trials import DAY_MS, TRIALS, Trial, compare
from tests.store.conftest import connect_agent
from tests.store.streams import event, exchange, intakes, message, opened
from tests.waiting import until

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("transactional_db")]


def submit(*events: dict[str, Any]) -> None:
    submit_inline(connect_agent().stream, intakes(list(events)))


def tried(name: str, shown: float, value: float) -> Trial:
    trial = Trial("t", name, shown)
    compare(trial, value, now_ms() - DAY_MS)
    return trial


def test_a_lower_share_flags_the_item_that_the_present_one_lets_pass() -> None:
    submit(opened(1, window=100_000), message(2, tokens=15_000), *exchange(3, 16_000))
    trial = tried("huge_item_share", 10, 0.1)
    assert (trial.now, trial.then) == (0, 1)
    found = [(e.code, e.more, e.title) for e in trial.examples]
    assert found == [("huge_item", True, "About c1")]
    assert (trial.done, trial.left_out) == (1, 0)


def test_a_higher_share_flags_fewer() -> None:
    submit(opened(1, window=100_000), message(2, tokens=29_000), *exchange(3, 30_000))
    trial = tried("huge_item_share", 60, 0.6)
    assert (trial.now, trial.then) == (1, 0)
    assert [(e.code, e.more) for e in trial.examples] == [("huge_item", False)]


def test_the_same_value_flags_the_same() -> None:
    submit(opened(1, window=100_000), message(2, tokens=29_000), *exchange(3, 30_000))
    trial = tried("huge_item_share", 20, 0.2)
    assert (trial.now, trial.then, trial.examples) == (1, 1, [])


def test_time_that_passed_between_events_counts_as_if_the_server_had_looked() -> None:
    """A user waited two minutes: nothing under ten, a finding under one."""
    start = now_ms() - 600_000
    submit(
        opened(1),
        event(2, "turn.started", turn="t", kind="user"),
        event(3, "turn.ended", turn="t", outcome="answered"),
    )
    for row in Event.objects.exclude(chat_seq=None):
        row.at = start if row.seq != 3 else start + 120_000
        row.save(update_fields=["at"])
    assert tried("unanswered_ms", 10, 600_000).then == 0
    assert tried("unanswered_ms", 1, 60_000).then == 1


def test_chats_without_an_event_in_the_last_day_are_not_looked_at() -> None:
    submit(opened(1, window=100_000), message(2, tokens=29_000), *exchange(3, 30_000))
    trial = Trial("t", "huge_item_share", 60)
    compare(trial, 0.6, now_ms() + 1_000)
    assert (trial.chats, trial.now) == (0, 0)


def test_it_runs_beside_the_request_and_says_when_it_is_done() -> None:
    submit(opened(1, window=100_000), message(2, tokens=29_000), *exchange(3, 30_000))
    trial = TRIALS.start("huge_item_share", 60)
    until(lambda: trial.state != "running")
    assert TRIALS.get(trial.id) is trial
    with pytest.raises(ValueError, match=r"^huge_item_share: "):
        TRIALS.start("huge_item_share", 1)
