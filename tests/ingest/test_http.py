"""``POST /api/v1/events``: the same promises as the socket, with an answer per event."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from django.test import RequestFactory

from ctxhealth.core.model import Connection
from ctxhealth.ingest.http import BODY_BYTES, events
from ctxhealth.store import queries, writes
from ctxhealth.store.models import Agent, Event
from ctxhealth.store.projects import default_project
from ctxhealth.store.verify import verify
from ctxhealth.store.writer import Writer
from ctxhealth.web.actions import obstacle_to
from ctxhealth.web.agent_rows import agent_lines
from ctxhealth.wire.frames import Hello
from tests.store.streams import message, opened, raw

pytestmark = [pytest.mark.db, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def token(transactional_db: None) -> str:
    return writes.token_create(name="http", scopes=["ingest"]).secret


def post(token: str, lines: list[bytes], **headers: str) -> tuple[int, Any]:
    given = {"Ctxhealth-Agent": "poster", "Ctxhealth-Epoch": "e1", **headers}
    request = RequestFactory().post(
        "/api/v1/events",
        data=b"\n".join(lines),
        content_type="application/x-ndjson",
        headers={"Authorization": f"Bearer {token}", **given},
    )
    response = events(request)
    return response.status_code, json.loads(response.content)


def statuses(answer: Any) -> list[str]:
    return [result["status"] for result in answer["results"]]


def test_events_are_stored_and_answered_one_by_one(token: str) -> None:
    bad = raw({**message(2), "id": 5})
    status, answer = post(token, [raw(opened(1)), bad, raw(message(3))])
    assert status == 200 and answer["acked"] == 3
    assert statuses(answer) == ["stored", "rejected", "stored"]
    assert answer["results"][1]["path"] == "$.id"
    assert Event.objects.filter(stream__isnull=False).count() == 3
    assert verify().problems == []


def test_a_chat_that_is_posted_says_so_and_not_that_its_agent_is_gone(token: str) -> None:
    post(token, [raw(opened(1)), raw(message(2))])
    post(token, [raw(message(3))])
    (row,) = queries.board_page().rows
    assert row.summary.connection is Connection.POSTS
    types = [event.type for event in queries.chat_events(row.id)]
    assert types == ["server.connected", "chat.opened", "message.added", "message.added"]
    detail = queries.chat_detail(row.id)
    assert detail is not None
    assert "by HTTP" in obstacle_to("compact_fallback", detail)
    (line,) = agent_lines(queries.agents_list())
    assert line.connection is Connection.POSTS
    assert verify().problems == []


def test_a_press_on_a_posted_chat_is_refused_for_want_of_a_channel(token: str) -> None:
    post(token, [raw(opened(1))])
    (row,) = queries.board_page().rows
    with pytest.raises(writes.Refused, match="by HTTP") as refused:
        writes.command_request(
            chat_id=row.id, kind="ping", idempotency_key="k", by=None, by_name="t", allowed=True
        )
    assert refused.value.reason == "unsupported"


def test_a_posted_chat_that_its_agent_takes_to_a_socket_is_live_then_posted_again(
    token: str,
) -> None:
    post(token, [raw(opened(1))])
    hello = Hello(protocols=[1], agent="poster", epoch="e2")
    at = writes.agent_connect(project=default_project().pk, hello=hello)
    announce = partial(writes.chats_announce, agent=at.stream.agent, conn_no=at.conn_no)
    announce(connected=True)
    assert queries.board_page().rows[0].summary.connection is Connection.LIVE
    post(token, [raw(message(2))])
    assert queries.board_page().rows[0].summary.connection is Connection.LIVE
    announce(connected=False)
    post(token, [raw(message(3))])
    assert queries.board_page().rows[0].summary.connection is Connection.POSTS
    assert verify().problems == []


def test_posting_again_is_success_and_other_content_a_conflict(token: str) -> None:
    post(token, [raw(opened(1)), raw(message(2))])
    status, answer = post(token, [raw(opened(1)), raw(message(2, tokens=7)), raw(message(3))])
    assert status == 200
    assert statuses(answer) == ["duplicate", "conflict", "stored"]


def test_behind_a_gap_nothing_is_stored_and_409_says_from_where(token: str) -> None:
    status, answer = post(token, [raw(opened(1)), raw(message(3))])
    assert (status, answer["resend_from"]) == (409, 2)
    assert statuses(answer) == ["stored", "gap"]


def test_seq_may_come_from_the_header(token: str) -> None:
    lines = [raw({k: v for k, v in event.items() if k != "seq"}) for event in
             (opened(1), message(2), message(3))]  # fmt: skip
    status, answer = post(token, lines, **{"Ctxhealth-First-Seq": "1"})
    assert status == 200 and answer["acked"] == 3


def test_through_the_writers_thread_the_answer_comes_after_the_commit(token: str) -> None:
    writer = Writer()
    writer.start()
    try:
        assert post(token, [raw(opened(1))])[1]["acked"] == 1
    finally:
        writer.stop()
    assert Event.objects.filter(seq=1).exists()


@pytest.mark.parametrize(
    ("headers", "lines", "status", "field"),
    [
        ({"Authorization": "Bearer nope"}, [raw(opened(1))], 401, "Authorization"),
        ({"Origin": "https://evil.example"}, [raw(opened(1))], 403, "Origin"),
        ({"Cookie": "a=b"}, [raw(opened(1))], 403, "Cookie"),
        ({"Ctxhealth-Agent": ""}, [raw(opened(1))], 422, "Ctxhealth-Agent"),
        ({"Ctxhealth-First-Seq": "0x1"}, [raw(opened(1))], 422, "Ctxhealth-First-Seq"),
        ({}, [b" "], 422, "body"),
        ({}, [b"not json"], 422, "body"),
        ({}, [b"x" * (BODY_BYTES + 1)], 413, "body"),
    ],
)
def test_a_bad_request_names_the_field(
    token: str, headers: dict[str, str], lines: list[bytes], status: int, field: str
) -> None:
    found, answer = post(token, lines, **headers)
    assert (found, answer["error"]["field"]) == (status, field)
    assert not Event.objects.exists()


def test_a_token_of_another_agent_or_scope_is_refused(transactional_db: None) -> None:
    other = writes.token_create(name="o", scopes=["ingest"], agent_name="somebody").secret
    reader = writes.token_create(name="r", scopes=["read"]).secret
    assert post(other, [raw(opened(1))])[0] == 403
    assert post(reader, [raw(opened(1))])[0] == 403
    assert not Agent.objects.exists()
