"""What retention deletes, what holds a chat, and that what is left is still whole."""

from __future__ import annotations

import pytest
import time_machine

from ctxhealth.store import queries, retention, writes
from ctxhealth.store.models import AuditEntry, Chat, Checkpoint, Event, Item, Reading, Stream
from ctxhealth.store.through import submit_inline
from ctxhealth.store.verify import verify
from ctxhealth.store.writes.agents import Connected
from tests.store.conftest import connect_agent
from tests.store.streams import intakes, message, session

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("transactional_db")]

LONG_AGO, NOW = "2026-01-05T10:00:00Z", "2026-03-01T10:00:00Z"


def no_pause(_: float) -> bool:
    return False


def two_chats(now: str = LONG_AGO) -> Connected:
    with time_machine.travel(now, tick=True):
        at = connect_agent()
        submit_inline(at.stream, intakes(session(chats=2, messages=3)))
    return at


def test_nothing_goes_until_an_admin_says_so() -> None:
    two_chats()
    with time_machine.travel(NOW, tick=True):
        assert retention.trim(no_pause) == 0
    assert Chat.objects.count() == 2


def test_quiet_chats_go_whole_and_the_rest_is_still_what_its_log_gives() -> None:
    at = two_chats()
    with time_machine.travel(NOW, tick=True):
        submit_inline(at.stream, intakes([message(21, "c2")]))
        writes.retention_set(days=30)
        assert retention.trim(no_pause) == 1
        kept = Chat.objects.get()
        assert kept.external_id == "c2"
        for table in (Event, Item, Reading, Checkpoint):
            rows = table._default_manager.exclude(chat_id=None)
            assert set(rows.values_list("chat_id", flat=True)) <= {kept.pk}
        assert verify().ok
        assert Stream.objects.get().trimmed == 10
        assert AuditEntry.objects.get(action="retention.trim").target == "1 chats"


def test_an_old_event_that_comes_again_is_known_although_its_chat_is_gone() -> None:
    at = two_chats()
    with time_machine.travel(NOW, tick=True):
        writes.retention_set(days=30)
        assert retention.trim(no_pause) == 2
        receipt = submit_inline(at.stream, intakes(session(chats=2, messages=3)))
        assert (receipt.stored, receipt.upto) == (0, 20)
        assert Chat.objects.count() == 0
        assert verify().ok


def test_a_lost_event_is_still_found_in_a_stream_that_was_trimmed() -> None:
    at = two_chats()
    with time_machine.travel(NOW, tick=True):
        submit_inline(at.stream, intakes([message(21, "c2")]))
        writes.retention_set(days=30)
        retention.trim(no_pause)
        Event.objects.filter(chat=Chat.objects.get(), seq=21).delete()
        assert any("stream" in problem.where for problem in verify().problems)


def test_an_open_command_holds_its_chat() -> None:
    two_chats()
    with time_machine.travel(NOW, tick=True):
        found = queries.chat_find("a1", "c1")
        assert found is not None
        writes.command_request(
            chat_id=found.id, kind="snapshot", by=None, allowed=True, idempotency_key="k"
        )
        writes.retention_set(days=30)
        assert retention.forecast(days=30).chats == 1
        assert retention.trim(no_pause) == 1
        assert Chat.objects.get().external_id == "c1"


def test_a_chat_under_review_stays_and_is_counted() -> None:
    two_chats()
    with time_machine.travel(NOW, tick=True):
        found = queries.chat_find("a1", "c1")
        assert found is not None
        by = writes.user_ensure(username="rev", role="operator")
        writes.review_create(chat_id=found.id, from_seq=1, to_seq=3, by=by)
        writes.retention_set(days=30)
        told = retention.forecast(days=30)
        assert (told.chats, told.pinned) == (1, 1)
        assert retention.trim(no_pause) == 1
        assert Chat.objects.get().external_id == "c1"


def test_the_forecast_says_what_a_run_then_deletes() -> None:
    two_chats()
    with time_machine.travel(NOW, tick=True):
        told = retention.forecast(days=30)
        assert (told.chats, told.pinned) == (2, 0)
        assert told.events == Event.objects.exclude(chat=None).count()
        assert retention.forecast(days=90).chats == 0
        writes.retention_set(days=30)
        assert retention.trim(no_pause) == told.chats
        assert Event.objects.exclude(chat=None).count() == 0


def test_a_run_ends_where_the_server_stops() -> None:
    two_chats()
    with time_machine.travel(NOW, tick=True):
        writes.retention_set(days=30)
        assert retention.trim(lambda _: True) == 1
        assert Chat.objects.count() == 1


@pytest.mark.parametrize("days", [0, 3_651])
def test_days_out_of_bounds_are_refused(days: int) -> None:
    with pytest.raises(ValueError, match=r"^days: 1 to 3650"):
        writes.retention_set(days=days)
