"""The pace of reconnecting, without a socket or a clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ctxhealth.client import limits
from ctxhealth.client.comeback import Comeback, Ended
from ctxhealth.client.journal import Journal
from ctxhealth.client.outbox import Outbox


@pytest.fixture(autouse=True)
def _real_pace(_quick_reconnect: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FIRST_DELAY_S", 0.5)
    monkeypatch.setattr(limits, "LONGEST_DELAY_S", 30.0)


@pytest.fixture
def journal() -> Iterator[Journal]:
    journal = Journal(lambda: Outbox(None), queue_events=10, queue_bytes=1_000)
    journal.open()
    yield journal
    journal.outbox.close()


def _longest(low: float, high: float) -> float:
    return high


def _shortest(low: float, high: float) -> float:
    return low


def test_the_ceiling_doubles_from_one_to_thirty_seconds_and_the_floor_stays(
    journal: Journal,
) -> None:
    slow = Comeback(journal, _longest)
    pauses = [slow.pause(Ended(None, "refused")) for _ in range(8)]
    assert pauses == [2, 4, 8, 16, 30, 30, 30, 30]
    quick = Comeback(journal, _shortest)
    assert {quick.pause(Ended(None, "refused")) for _ in range(8)} == {0.5}


def test_a_connection_that_worked_starts_the_pace_anew(journal: Journal) -> None:
    comeback = Comeback(journal, _longest)
    for _ in range(5):
        comeback.pause(Ended(None, "refused"))
    assert comeback.pause(Ended(1012, "restart", stable=True)) == 1
    assert comeback.pause(Ended(None, "refused")) == 2


def test_an_overloaded_server_is_given_more_time(journal: Journal) -> None:
    for code in (limits.CLOSE_OVERLOAD, limits.CLOSE_RATE):
        assert Comeback(journal, _longest).pause(Ended(code, "full", stable=True)) == 4


@pytest.mark.parametrize("code", [4401, 4403, 4406, 400, 401, 403, 404])
def test_what_only_a_person_can_heal_is_tried_again_after_minutes(
    journal: Journal, code: int
) -> None:
    assert Comeback(journal, _shortest).pause(Ended(code, "no")) == 60
    assert Comeback(journal, _longest).pause(Ended(code, "no")) == 300


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503, 1006, 4400, 4413])
def test_what_may_pass_is_tried_again_within_seconds(journal: Journal, code: int) -> None:
    assert Comeback(journal, _longest).pause(Ended(code, "no")) <= 4


def test_many_agents_spread_out_after_a_restart(journal: Journal) -> None:
    pauses = [Comeback(journal).pause(Ended(1012, "restart")) for _ in range(500)]
    assert all(0.5 <= pause <= 2 for pause in pauses)
    buckets = {int((pause - 0.5) / 0.15) for pause in pauses}
    assert len(buckets) == 10


def test_a_stream_is_given_up_only_after_two_refusals_to_resume(journal: Journal) -> None:
    comeback, epoch = Comeback(journal, _shortest), journal.outbox.epoch
    comeback.pause(Ended(limits.CLOSE_CANNOT_RESUME, "hole"))
    assert journal.outbox.epoch == epoch
    comeback.pause(Ended(limits.CLOSE_CANNOT_RESUME, "hole"))
    assert journal.outbox.epoch != epoch
