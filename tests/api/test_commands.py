"""Pressing over the HTTP API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from ctxhealth.store import queries
from tests.api.conftest import press
from tests.live.world import Agent


def test_a_press_is_queued_and_can_be_followed(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    response = press(operator, pk, args={"target": 50_000})
    assert response.status_code == 201
    command = response.json()["command"]
    assert command["state"] == "queued"
    assert command["args"] == {"target": 50_000}
    assert command["by"] == "token for operate"
    followed = operator.get(f"/api/v1/commands/{command['id']}").json()["command"]
    assert followed["id"] == command["id"]
    assert queries.audit_page().rows[0].result == "queued"


def test_the_same_key_gives_the_same_command(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    first, again = press(operator, pk), press(operator, pk)
    assert again.status_code == 201
    assert again.json()["command"]["id"] == first.json()["command"]["id"]
    assert len(queries.chat_commands(pk)) == 1


def test_a_second_press_gets_the_first_one(robot: Agent, operator: Client) -> None:
    pk = robot.chat("c1", 60_000)
    first = press(operator, pk).json()["command"]
    response = press(operator, pk, idempotency_key="k2")
    assert response.status_code == 409
    body = response.json()
    assert body["error"]["code"] == "open_command"
    assert body["command"]["id"] == first["id"]
    assert body["command"]["by"] == first["by"]


def test_a_key_used_again_for_the_same_request_gives_the_same_command(
    robot: Agent, operator: Client
) -> None:
    pk = robot.chat("c1", 60_000)
    first = press(operator, pk, args={"keep_turns": 2}).json()["command"]
    again = press(operator, pk, args={"keep_turns": 2}, reason="the same in other words")
    assert again.status_code == 201
    assert again.json()["command"]["id"] == first["id"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"kind": "ping"}, "kind compact_fallback"), ({"args": {"keep_turns": 3}}, "other args")],
)
def test_a_key_used_again_for_another_request_is_a_clash(
    robot: Agent, operator: Client, changes: dict[str, Any], named: str
) -> None:
    pk = robot.chat("c1", 60_000)
    first = press(operator, pk).json()["command"]
    clash = press(operator, pk, **changes)
    assert clash.status_code == 409
    error = clash.json()["error"]
    assert (error["code"], error["field"]) == ("key_used", "idempotency_key")
    assert first["id"] in error["detail"] and named in error["detail"]
    assert len(queries.chat_commands(pk)) == 1


def test_a_key_used_for_another_chat_is_a_clash(robot: Agent, operator: Client) -> None:
    pk, other = robot.chat("c1", 60_000), robot.chat("c2", 60_000)
    assert press(operator, pk).status_code == 201
    clash = press(operator, other)
    assert clash.status_code == 409
    assert f"chat {pk}" in clash.json()["error"]["detail"]
    assert queries.chat_commands(other) == []


def test_what_has_not_started_can_be_cancelled_once(robot: Agent, operator: Client) -> None:
    command = press(operator, robot.chat("c1", 60_000)).json()["command"]
    path = f"/api/v1/commands/{command['id']}/cancel"
    assert operator.post(path).json()["command"]["state"] == "cancelled"
    again = operator.post(path)
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "ended"


def test_what_the_agent_cannot_do_is_refused_with_what_helps(
    robot: Agent, operator: Client
) -> None:
    response = press(operator, robot.chat("c1", 60_000), kind="rescue")
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "unsupported"
    assert "compact_fallback" in response.json()["error"]["detail"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"kind": "explode"}, "kind"),
        ({"kind": 7}, "kind"),
        ({"reason": ""}, "reason"),
        ({"reason": "x" * 501}, "reason"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"args": []}, "args"),
        ({"kind": "clear_latch"}, "args.latch"),
    ],
)
def test_a_bad_value_is_named_and_nothing_is_queued(
    robot: Agent, operator: Client, changes: dict[str, Any], field: str
) -> None:
    pk = robot.chat("c1", 60_000)
    response = press(operator, pk, **changes)
    assert response.status_code == 422
    assert response.json()["error"]["field"] == field
    assert queries.chat_commands(pk) == []


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"", 400, "bad_json"),
        (b"{", 400, "bad_json"),
        (b"\xff", 400, "bad_json"),
        (b"[]", 422, "invalid"),
        (b"null", 422, "invalid"),
        (b'{"kind":"ping","kind":"ping"}', 422, "duplicate_key"),
        (b'{"a":' * 30 + b"1" + b"}" * 30, 422, "too_deep"),
        (b'{"args":{"n":NaN}}', 422, "not_finite"),
        (b" " * 70_000, 413, "too_big"),
    ],
)
def test_a_body_that_is_no_command_is_a_clear_error(
    robot: Agent, operator: Client, raw: bytes, status: int, code: str
) -> None:
    pk = robot.chat("c1", 60_000)
    path = f"/api/v1/chats/{pk}/commands"
    response = operator.post(path, raw, content_type="application/json")
    assert response.status_code == status
    assert response.json()["error"]["code"] == code


def test_no_such_chat_and_no_such_command(robot: Agent, operator: Client) -> None:
    assert press(operator, 77).status_code == 404
    assert operator.get("/api/v1/commands/nothing").status_code == 404
    assert operator.post("/api/v1/commands/nothing/cancel").status_code == 404
