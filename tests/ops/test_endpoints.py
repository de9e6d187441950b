"""/healthz, /readyz and /metrics."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client
from prometheus_client.parser import text_string_to_metric_families

from ctxhealth import runtime
from ctxhealth.ops.metrics import LABELLED, METRICS, PREFIX
from ctxhealth.store import writes
from ctxhealth.store.writer import Writer
from tests.live.world import Agent


async def _get(path: str, **extra: Any) -> Any:
    try:
        return await AsyncClient().get(path, **extra)
    finally:
        await runtime.stop()


def get(path: str, **extra: Any) -> Any:
    return async_to_sync(_get)(path, **extra)


def test_a_living_process_says_so_without_a_database() -> None:
    response = Client().get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")
    assert Client().post("/healthz").status_code == 405


def test_a_server_that_can_work_is_ready(robot: Agent) -> None:
    response = get("/readyz")
    assert response.status_code == 200
    assert response.json() == {"ready": True, "database": "ok", "writer": "ok", "loop": "ok"}


def test_a_stopped_writer_is_not_ready(robot: Agent) -> None:
    async def scenario() -> Any:
        running = runtime.get()
        try:
            await asyncio.to_thread(running.writer.stop)
            return await AsyncClient().get("/readyz")
        finally:
            await runtime.stop()

    response = async_to_sync(scenario)()
    assert response.status_code == 503
    assert response.json()["writer"] == "The writer does not run."
    assert response.json()["database"] == "ok"


def test_a_writer_that_cannot_write_is_not_ready(
    robot: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the server writes of itself at its start must not tell that all is well again.
    monkeypatch.setattr(Writer, "_recovered", lambda self: None)

    async def scenario() -> Any:
        running = runtime.get()
        running.writer.busy = "the server's disk is full"
        try:
            return await AsyncClient().get("/readyz")
        finally:
            running.writer.busy = None
            await runtime.stop()

    response = async_to_sync(scenario)()
    assert response.status_code == 503
    assert "disk is full" in response.json()["writer"]


def test_a_database_that_is_away_is_not_ready(
    robot: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError("host, user and password")

    monkeypatch.setattr("ctxhealth.ops.health._query", fail)
    response = get("/readyz")
    assert response.status_code == 503
    assert response.json()["database"] == "The database cannot be read: OSError."


def test_metrics_tell_every_number_and_no_label_names_a_chat(robot: Agent) -> None:
    robot.chat("secret-chat-name", 60_000)
    text = get("/metrics").content.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for number in METRICS:
        assert PREFIX + number.name in families, number.name
    for name in LABELLED:
        assert PREFIX + name in families, name
    labels = {key for family in families.values() for s in family.samples for key in s.labels}
    assert labels <= {"state", "connected", "version"}
    assert "secret-chat-name" not in text
    assert "robot" not in text
    [healthy] = families[PREFIX + "chats"].samples
    assert (healthy.labels, healthy.value) == ({"state": "healthy"}, 1)


@pytest.mark.parametrize(
    "extra",
    [
        {"REMOTE_ADDR": "10.0.0.9"},
        {"headers": {"X-Forwarded-For": "10.0.0.9"}},
        {"headers": {"Authorization": "Bearer ctxh_a_b"}},
    ],
)
def test_metrics_are_not_for_strangers(robot: Agent, extra: dict[str, Any]) -> None:
    client = Client(REMOTE_ADDR=extra.get("REMOTE_ADDR", "127.0.0.1"))
    response = client.get("/metrics", headers=extra.get("headers"))
    assert response.status_code == 401
    assert b"ctxhealth_events" not in response.content


def test_metrics_are_for_a_token_that_may_read(robot: Agent) -> None:
    secret = writes.token_create(name="scraper", scopes=("read",)).secret
    assert get("/metrics", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    other = writes.token_create(name="agent", scopes=("ingest",)).secret
    assert get("/metrics", headers={"Authorization": f"Bearer {other}"}).status_code == 401
