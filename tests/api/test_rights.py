"""Who may read and who may act over the HTTP API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from ctxhealth.store import queries, writes
from tests.api.conftest import press
from tests.live.world import Agent


def signed_in(role: Any, **client: Any) -> Client:
    made = Client(**client)
    made.force_login(writes.user_ensure(username=f"{role}-person", role=role))
    return made


def test_strangers_are_told_what_to_send(robot: Agent) -> None:
    response = Client().get("/api/v1/chats")
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "unauthenticated"
    assert response["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer", "Bearer x", "Bearer ctxh_a_b", "Basic eA==", "x"])
def test_a_bad_token_is_refused(robot: Agent, header: str) -> None:
    response = Client(headers={"Authorization": header}).get("/api/v1/chats")
    assert response.status_code == 401


def test_a_bad_token_is_refused_also_beside_a_good_session(robot: Agent) -> None:
    client = signed_in("operator", headers={"Authorization": "Bearer ctxh_a_b"})
    assert client.get("/api/v1/chats").status_code == 401


def test_an_agents_own_token_reads_nothing(robot: Agent) -> None:
    secret = writes.token_create(name="agents", scopes=("ingest", "command")).secret
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    assert client.get("/api/v1/chats").status_code == 403


def test_a_revoked_token_is_refused(robot: Agent) -> None:
    made = writes.token_create(name="gone", scopes=("read",))
    client = Client(headers={"Authorization": f"Bearer {made.secret}"})
    assert client.get("/api/v1/chats").status_code == 200
    writes.token_revoke(token_id=made.token.pk)
    assert client.get("/api/v1/chats").status_code == 401


def test_a_reading_token_presses_nothing_and_the_try_is_in_the_audit(
    robot: Agent, reader: Client
) -> None:
    response = press(reader, robot.chat("c1", 60_000))
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "no_right"
    entry = queries.audit_page().rows[0]
    assert entry.action == "command.compact_fallback"
    assert entry.result == "refused: no_right"
    assert entry.by == "token for read"


def test_every_role_reads_by_session_and_viewers_press_nothing(robot: Agent) -> None:
    pk = robot.chat("c1", 60_000)
    for role, status in (("viewer", 403), ("operator", 201)):
        client = signed_in(role)
        assert client.get(f"/api/v1/chats/{pk}").status_code == 200
        assert press(client, pk).status_code == status


def test_an_account_without_a_role_reads_nothing(robot: Agent) -> None:
    client = Client()
    user = writes.user_ensure(username="nobody", role="viewer")
    writes.user_set_role(user=user, role=None)
    client.force_login(user)
    assert client.get("/api/v1/chats").status_code == 403


def test_a_press_by_session_needs_the_csrf_token(robot: Agent) -> None:
    pk = robot.chat("c1", 60_000)
    client = signed_in("operator", enforce_csrf_checks=True)
    assert client.get("/api/v1/chats").status_code == 200
    response = press(client, pk)
    assert response.status_code == 403
    assert "CSRF" in response.json()["error"]["detail"]
    assert queries.chat_commands(pk) == []


def test_a_read_only_server_takes_no_press_from_anybody(
    robot: Agent, operator: Client, settings: Any
) -> None:
    settings.CTXHEALTH_READ_ONLY = True
    response = press(operator, robot.chat("c1", 60_000))
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "server_read_only"
