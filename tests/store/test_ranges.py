"""A stretch of a chat's log: its ends, what it holds, and where a moment lies."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.store.models import Chat, Event
from ctxhealth.store.queries.ranges import Range, range_of, range_rows, seq_at
from ctxhealth.web.series import LANE_TYPES
from tests.store.conftest import Sender, connect_agent
from tests.store.troubles import Told

pytestmark = pytest.mark.db


@pytest.fixture
def chat(sender: Sender) -> Chat:
    told = Told().opens("c1").asks("c1").dead_summarizer("c1", 3).stops("c1").folds("c1")
    sender.send(connect_agent(), told.works("c1", 3).take())
    return Chat.objects.get()


def whole(chat: Chat) -> Range:
    found = range_of(chat.pk, 1, chat.chat_seq)
    assert found is not None
    return found


def test_a_range_is_cut_to_the_events_that_are_there(chat: Chat) -> None:
    found = range_of(chat.pk, 3, 10**9)
    assert found is not None
    assert (found.first, found.last) == (3, chat.chat_seq)
    turned = range_of(chat.pk, 9, 4)
    assert turned is not None and (turned.first, turned.last) == (4, 9)
    assert range_of(chat.pk + 1, 1, 5) is None


def test_a_moment_is_found_by_halves_at_its_last_event(chat: Chat) -> None:
    events = Event.objects.filter(chat=chat).order_by("chat_seq")
    for place, event in enumerate(events):
        Event.objects.filter(pk=event.pk).update(at=1_000 * (place // 2))
    within = whole(chat)
    for at in (0, 999, 1_000, 3_500, 10**9):
        expected = max(
            (e.chat_seq or 0 for e in Event.objects.filter(chat=chat) if e.at <= at), default=1
        )
        assert seq_at(chat.pk, at, within) == expected
    assert seq_at(chat.pk, -5, within) == within.first


def test_a_range_holds_what_lasted_into_it_and_nothing_else(chat: Chat) -> None:
    finished = Event.objects.filter(chat=chat, type="compaction.finished").order_by("chat_seq")
    seqs = [event.chat_seq or 0 for event in finished]
    Event.objects.filter(chat=chat).update(at=5)
    rows = range_rows(chat.pk, _between(chat, seqs[1], seqs[2]), LANE_TYPES)
    assert [attempt.finished_seq for attempt in rows.attempts] == seqs[1:3]
    assert rows.findings[0].since_seq < seqs[1]  # it began before and lasted
    assert all(finding.since_seq <= seqs[2] for finding in rows.findings)
    assert [event.type for event in rows.events] == []
    assert all(seqs[1] <= point.chat_seq <= seqs[2] for point in rows.points)


def test_long_series_are_thinned_and_keep_their_peaks(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxhealth.store.models import Reading
    from ctxhealth.store.queries import ranges

    made: list[Any] = [
        Reading(chat=chat, chat_seq=1_000 + n, at=n, load=500 if n == 777 else 100, source="agent")
        for n in range(2_000)
    ]
    Reading.objects.bulk_create(made)
    monkeypatch.setattr(ranges, "POINTS", 60)
    rows = range_rows(chat.pk, Range(first=1_000, last=3_000, first_at=0, last_at=2_000))
    assert len(rows.points) <= 70
    assert max(point.load or 0 for point in rows.points) == 500
    assert [point.chat_seq for point in rows.points] == sorted(p.chat_seq for p in rows.points)


def _between(chat: Chat, first: int, last: int) -> Range:
    found = range_of(chat.pk, first, last)
    assert found is not None
    return found
