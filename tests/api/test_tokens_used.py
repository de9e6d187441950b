from __future__ import annotations

import pytest
from django.test import Client

from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.store.queries import TokenRow
from ctxhealth.store.writes.tokens import USED_EVERY_MS
from tests.waiting import until

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("transactional_db")]


def only_token() -> TokenRow:
    (token,) = queries.tokens_list()
    return token


@pytest.mark.parametrize("path", ["/api/v1/chats", "/metrics"])
def test_a_reading_token_shows_when_it_was_last_used(path: str) -> None:
    secret = writes.token_create(name="grafana", scopes=("read",)).secret
    assert only_token().last_used_at is None
    began = now_ms()
    assert Client(headers={"Authorization": f"Bearer {secret}"}).get(path).status_code == 200
    # Where a writer runs, the request does not wait for this.
    until(lambda: only_token().last_used_at is not None)
    assert (only_token().last_used_at or 0) >= began


def test_use_is_written_once_a_minute_at_most() -> None:
    token = writes.token_create(name="busy", scopes=("read",)).token
    writes.token_used(token_id=token.pk, now=1_000)
    writes.token_used(token_id=token.pk, now=1_000 + USED_EVERY_MS - 1)
    assert only_token().last_used_at == 1_000
    writes.token_used(token_id=token.pk, now=1_000 + USED_EVERY_MS)
    assert only_token().last_used_at == 1_000 + USED_EVERY_MS


def test_a_refused_request_is_no_use() -> None:
    secret = writes.token_create(name="agent", scopes=("ingest",)).secret
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    assert client.get("/metrics").status_code == 401
    assert only_token().last_used_at is None
