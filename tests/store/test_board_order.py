"""The board sorted by each of its columns: every page, both ways, nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from ctxhealth.store import queries
from ctxhealth.store.queries.board_order import ORDERS, BadCursor, BadSort
from tests.store.conftest import Sender, connect_agent
from tests.store.streams import event, exchange, opened

TITLES = ("delta", "Alpha", None, "charlie", "Bravo", "echo", "Foxtrot")
WINDOW = 100_000


@pytest.fixture
def peopled(sender: Sender) -> Sender:
    """Seven chats: six loads, one without any; two waiting users; three compactions; one stop."""
    events: list[dict[str, Any]] = []
    for number, title in enumerate(TITLES):
        name = f"chat-{number}"
        events.append(opened(len(events) + 1, name, window=WINDOW, title=title))
        if number != 3:
            events += exchange(len(events) + 1, 5_000 * ((number * 4) % 7 + 1), name)
        if number in (1, 4):
            events.append(event(len(events) + 1, "turn.started", name, turn=f"t{number}"))
        if number in (0, 2, 6):
            events += compaction(len(events) + 1, name)
    events.append(event(len(events) + 1, "agent.stopped", "chat-5", reason="5 unusable"))
    sender.send(connect_agent(read_only=True), events)  # times are the events' own
    return sender


def compaction(seq: int, chat: str) -> list[dict[str, Any]]:
    facts = {"attempt": "a1", "before": 9_000, "scope": "prompt"}
    return [
        event(seq, "compaction.started", chat, trigger="proactive", **facts),
        event(seq + 1, "compaction.finished", chat, reported="done", after=4_000, **facts),
    ]


def paged(sort: str, limit: int = 2) -> list[queries.BoardRow]:
    rows: list[queries.BoardRow] = []
    cursor = None
    while True:
        page = queries.board_page(queries.BoardFilters(sort=sort), cursor, limit)
        rows += page.rows
        cursor = page.next
        if cursor is None:
            return rows


def measure(sort: str, row: queries.BoardRow) -> Any:
    """What the sort compares, as the row itself shows it; None where it shows nothing."""
    shown = row.summary
    if sort == "title":
        return (shown.title or row.external_id).lower()
    if sort == "load":
        return None if shown.load.value is None else -shown.load.value
    if sort == "compaction":
        return -shown.last_compaction.at if shown.last_compaction else None
    return shown.headroom.trigger if sort == "headroom" else shown.waiting_since


@pytest.mark.parametrize("sort", list(ORDERS))
def test_pages_of_every_order_hold_each_chat_once_and_as_one_page_would(
    peopled: Sender, sort: str
) -> None:
    names = [row.external_id for row in paged(sort)]
    assert sorted(names) == [f"chat-{number}" for number in range(len(TITLES))]
    whole = queries.board_page(queries.BoardFilters(sort=sort))
    assert names == [row.external_id for row in whole.rows]
    assert whole.next is None


@pytest.mark.parametrize("sort", ["title", "load", "headroom", "compaction", "waiting"])
def test_a_column_sorts_both_ways_with_the_unknown_last(peopled: Sender, sort: str) -> None:
    first, turned = ([measure(sort, row) for row in paged(each)] for each in (sort, f"-{sort}"))
    known = [value for value in first if value is not None]
    assert len(set(known)) > 1
    assert known == sorted(known) == [value for value in turned if value is not None][::-1]
    unknown = [None] * (len(TITLES) - len(known))
    assert first[len(known) :] == turned[len(known) :] == unknown


def test_calm_chats_stand_first_where_the_state_is_turned_round(peopled: Sender) -> None:
    assert paged("")[0].external_id == "chat-5"
    assert paged("-state")[-1].external_id == "chat-5"


@pytest.mark.parametrize("other", ["title", "-load", "-state"])
def test_a_cursor_of_another_order_is_refused(peopled: Sender, other: str) -> None:
    cursor = queries.board_page(limit=2).next
    with pytest.raises(BadCursor, match="another order"):
        queries.board_page(queries.BoardFilters(sort=other), cursor)


def test_an_order_that_does_not_exist_is_refused(transactional_db: None) -> None:
    with pytest.raises(BadSort, match="sort: must be one of"):
        queries.board_page(queries.BoardFilters(sort="id; drop table"))


@pytest.mark.parametrize("sort", ["", "waiting", "-waiting"])
def test_a_transcript_without_an_answer_never_stands_above_a_user_who_waits(
    sender: Sender, sort: str
) -> None:
    events = [opened(1, "old"), event(2, "turn.started", "old", turn="t1")]
    sender.send(connect_agent("transcripts", read_only=True), events)
    events = [opened(1, "here"), event(2, "turn.started", "here", turn="t1"), opened(3, "calm")]
    sender.send(connect_agent("worker"), events)
    names = [row.external_id for row in paged(sort)]
    assert names == (["here", "old", "calm"])
