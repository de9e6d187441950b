"""The OpenAPI document, and that the answers are what it says."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.live.world import Agent


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = Client().get("/api/openapi.json").json()
    return found


def test_it_is_openapi_3_1_and_names_every_route(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {
        "/api/v1/chats",
        "/api/v1/chats/{chat_id}",
        "/api/v1/chats/{chat_id}/events",
        "/api/v1/chats/{chat_id}/readings",
        "/api/v1/chats/{chat_id}/at/{chat_seq}",
        "/api/v1/chats/{chat_id}/commands",
        "/api/v1/commands/{command_id}",
        "/api/v1/commands/{command_id}/cancel",
        "/api/v1/incidents",
        "/api/v1/incidents/{incident_id}",
    }


def test_every_reference_in_it_leads_somewhere(document: dict[str, Any]) -> None:
    for reference in _references(document):
        place: Any = document
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


def _references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [found for entry in value for found in _references(entry)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    return own + [found for entry in value.values() for found in _references(entry)]


def test_an_unknown_address_and_a_wrong_method_are_json_too() -> None:
    for path, status in (("/api/nothing", 404), ("/api/v1/", 404), ("/api/v1/nothing", 404)):
        response = Client().get(path)
        assert response.status_code == status
        assert response.json()["error"]["code"] == "not_found"
    response = Client().delete("/api/v1/chats")
    assert response.status_code == 405
    assert response.json()["error"]["code"] == "method_not_allowed"
    assert "GET" in response["Allow"]


def test_a_failure_of_the_server_says_so_without_a_trace(
    robot: Agent, reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("secret detail at line 7")

    monkeypatch.setattr("ctxhealth.store.queries.board_page", fail)
    response = reader.get("/api/v1/chats")
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal"
    assert b"secret" not in response.content
    assert b"Traceback" not in response.content
