"""Tokens, one-time logins, the incarnation, the board's pages and the SQLite check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxhealth.store import incarnation, queries, startup, writes
from ctxhealth.store.checks import check_one_worker, sqlite_is_safe
from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import Agent, AgentToken, Chat, LoginLink, ServerInfo
from ctxhealth.store.queries.board_order import BadCursor
from tests.store.conftest import Sender, connect_agent
from tests.store.streams import event, exchange, opened

pytestmark = [pytest.mark.db, pytest.mark.django_db(transaction=True)]


def test_a_token_is_shown_once_and_kept_as_a_hash(transactional_db: None) -> None:
    made = writes.token_create(name="t", scopes=["ingest"])
    assert made.secret.startswith(f"ctxh_{made.token.key_id}_")
    assert made.secret.rpartition("_")[2] not in str(AgentToken.objects.values().get())
    found = queries.token_check(made.secret, now_ms())
    assert found is not None and found.scopes == {"ingest"}


def test_a_revoked_expired_or_altered_token_is_nobody(transactional_db: None) -> None:
    revoked = writes.token_create(name="a")
    assert writes.token_revoke(token_id=revoked.token.pk) is True
    assert writes.token_revoke(token_id=revoked.token.pk) is False
    expired = writes.token_create(name="b", expires_at=10)
    good = writes.token_create(name="c").secret
    for bearer in (revoked.secret, expired.secret, good[:-1], good + "A", "", "ctxh__", "x" * 300):
        assert queries.token_check(bearer, now_ms()) is None
    assert queries.token_check(good, now_ms()) is not None


@pytest.mark.parametrize("scopes", [[], ["ingest", "root"]])
def test_a_token_needs_known_scopes(transactional_db: None, scopes: list[str]) -> None:
    with pytest.raises(ValueError, match="scopes"):
        writes.token_create(name="t", scopes=scopes)


def test_a_login_link_works_once(transactional_db: None) -> None:
    user = writes.user_ensure(username="ada", role="operator")
    token = writes.login_link_create(user=user).split("/")[-2]
    assert token not in str(LoginLink.objects.values().get())
    assert writes.login_link_use(token=token) == user
    assert writes.login_link_use(token=token) is None
    old = writes.login_link_create(user=user, minutes=-1).split("/")[-2]
    assert writes.login_link_use(token=old) is None


def test_a_rewound_database_begins_a_new_incarnation(
    transactional_db: None, tmp_path: Path
) -> None:
    assert incarnation.settle(tmp_path) is False
    first = incarnation.current()
    assert incarnation.settle(tmp_path) is False
    assert incarnation.current() == first
    ServerInfo.objects.update(boots=1)
    assert incarnation.settle(tmp_path) is True
    assert incarnation.current() != first
    again = incarnation.current()
    assert incarnation.settle(tmp_path) is False and incarnation.current() == again


def test_after_a_crash_nobody_is_connected(sender: Sender) -> None:
    sender.send(connect_agent(), [opened(1)])
    assert startup.settle() == 1
    assert Agent.objects.get().connected is False
    assert Chat.objects.get().connection in ("offline", "late")
    assert startup.settle() == 0


def test_the_board_pages_through_everything_worst_first(sender: Sender) -> None:
    events: list[dict[str, Any]] = []
    for number in range(12):
        name = f"chat-{number}"
        events.append(opened(len(events) + 1, name))
        if number % 3 == 0:
            events.append(event(len(events) + 1, "agent.stopped", name, reason="5 unusable"))
        else:
            events += exchange(len(events) + 1, 1_000 * number, name)
    sender.send(connect_agent(), events)
    seen: list[str] = []
    cursor = None
    while True:
        page = queries.board_page(cursor=cursor, limit=5)
        seen += [row.external_id for row in page.rows]
        cursor = page.next
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == page.total == 12
    assert {f"chat-{number}" for number in (0, 3, 6, 9)} == set(seen[:4])


def test_filters_narrow_and_counts_stay(sender: Sender) -> None:
    sender.send(
        connect_agent(),
        [
            opened(1, "a", title="Invoices", model="m-one"),
            opened(2, "b", title="Weather", model="m-two"),
            event(3, "agent.stopped", "b", reason="5 unusable"),
        ],
    )
    page = queries.board_page(queries.BoardFilters(states=("stopped",)))
    assert [row.external_id for row in page.rows] == ["b"]
    assert page.total == 2 and page.matching == 1 and page.counts_by_state["stopped"] == 1
    assert queries.board_page(queries.BoardFilters(q="invoi m-one")).total == 1
    assert queries.board_page(queries.BoardFilters(model="m-two")).total == 1
    assert queries.filter_choices() == {"agents": ["a1"], "models": ["m-one", "m-two"]}


@pytest.mark.parametrize("cursor", ["x", "W10", "bm90IGpzb24", "é"])
def test_a_foreign_cursor_is_refused(transactional_db: None, cursor: str) -> None:
    with pytest.raises(BadCursor):
        queries.board_page(cursor=cursor)


def test_a_state_of_the_past_is_the_fold_up_to_it(sender: Sender) -> None:
    events = [opened(1)]
    for turn in range(200):
        events += exchange(len(events) + 1, 1_000 + turn * 10)
    sender.send(connect_agent(), events)
    chat = Chat.objects.get()
    for at in (2, 150, 257, 300):
        past = queries.chat_state(chat.pk, at)
        assert past is not None and past.seq == at
    now = queries.chat_detail(chat.pk)
    assert now is not None and now.summary.requests == 200
    assert now.summary == queries.board_page().rows[0].summary


def test_the_series_keeps_its_extremes_when_it_is_thinned(sender: Sender) -> None:
    events = [opened(1)]
    loads = [1_000 + turn for turn in range(300)]
    loads[137], loads[200] = 90_000, 7
    for load in loads:
        events += exchange(len(events) + 1, load)
    sender.send(connect_agent(), events)
    series = queries.chat_readings(Chat.objects.get().pk, points=30)
    assert len(series) <= 60
    shown = [point.load for point in series if point.load is not None]
    assert max(shown) == 90_000 and min(shown) == 7


def test_only_a_fixed_sqlite_is_safe() -> None:
    assert sqlite_is_safe((3, 51, 3)) and sqlite_is_safe((3, 53, 4))
    assert sqlite_is_safe((3, 44, 6)) and sqlite_is_safe((3, 50, 7))
    assert not sqlite_is_safe((3, 51, 1)) and not sqlite_is_safe((3, 40, 1))


def test_more_than_one_worker_is_refused(settings: Any) -> None:
    assert check_one_worker() == []
    settings.CTXHEALTH_WORKERS = 2
    assert [problem.id for problem in check_one_worker()] == ["store.E002"]
