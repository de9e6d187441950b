"""Verify finds what was changed behind the fold's back, and repair puts it right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxhealth.store.models import Chat, Checkpoint, Event, Finding, Item, Reading, Stream
from ctxhealth.store.through import submit_inline
from ctxhealth.store.verify import verify
from tests.store.conftest import Sender, connect_agent
from tests.store.streams import event, intakes, message, opened, session

pytestmark = pytest.mark.db


def _title() -> None:
    Chat.objects.update(title="another")


def _summary() -> None:
    chat = Chat.objects.all()[0]
    chat.summary = chat.summary.replace('"requests":', '"requests":1')
    chat.save(update_fields=["summary"])


def _item() -> None:
    Item.objects.all()[0].delete()


def _reading() -> None:
    Reading.objects.update(load=1)


def _finding() -> None:
    Finding.objects.create(
        chat=Chat.objects.all()[0], code="stopped", since_seq=1, severity="critical", since=1,
        view='{"code":"stopped"}',
    )  # fmt: skip


def _checkpoint() -> None:
    row = Checkpoint.objects.all()[0]
    row.state = bytes(row.state)[:-1] + b"\xc0"
    row.save()


@pytest.mark.parametrize("tamper", [_title, _summary, _item, _reading, _finding, _checkpoint])
def test_verify_says_where_and_repair_puts_it_right(
    sender: Sender, tamper: Callable[[], None]
) -> None:
    sender.send(connect_agent(), session(1, 100))
    sender.writer.stop()
    assert verify().ok
    tamper()
    report = verify(repair=True)
    assert [problem.where for problem in report.problems] == [f"chat {Chat.objects.get().pk}"]
    assert report.repaired == 1
    assert verify().problems == []


def test_a_hole_in_the_log_is_named_and_never_folded_over(sender: Sender) -> None:
    sender.send(connect_agent(), session(1, 3))
    Event.objects.filter(chat_seq=4).delete()
    found = [problem.what for problem in verify().problems]
    assert any("misses event 4" in what for what in found)
    assert any("head is" in what for what in found)


def test_a_head_ahead_of_its_events_is_named(sender: Sender) -> None:
    sender.send(connect_agent(), [opened(1), message(2)])
    Stream.objects.update(head=9)
    assert [problem.where.split()[0] for problem in verify().problems] == ["stream"]


@pytest.mark.django_db(transaction=True)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cuts=st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_any_cut_into_batches_gives_the_same_projections(cuts: list[int]) -> None:
    at = connect_agent(f"cut-{len(cuts)}-{sum(cuts)}-{Stream.objects.count()}")
    events = session(2, 6)
    events.append(
        event(len(events) + 1, "agent.stopped", "c1", reason="5 unusable replies", count=5)
    )
    start = 0
    for cut in cuts:
        if start < len(events):
            submit_inline(at.stream, intakes(events[start : start + cut]))
            start += cut
    assert verify().problems == []
