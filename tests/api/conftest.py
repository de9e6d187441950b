from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from ctxhealth.store import writes
from tests.live.world import Agent

Api = Callable[..., Any]


@pytest.fixture
def robot(transactional_db: None) -> Agent:
    return Agent()


@pytest.fixture
def reader(transactional_db: None) -> Client:
    return _client(("read",))


@pytest.fixture
def operator(transactional_db: None) -> Client:
    return _client(("operate",))


def _client(scopes: tuple[str, ...]) -> Client:
    secret = writes.token_create(name=f"for {scopes[0]}", scopes=scopes).secret
    return Client(headers={"Authorization": f"Bearer {secret}"})


def press(client: Client, chat: int, **fields: Any) -> Any:
    body = {"kind": "compact_fallback", "reason": "too full", "idempotency_key": "k1", **fields}
    return client.post(f"/api/v1/chats/{chat}/commands", body, content_type="application/json")
