"""The server's half of the protocol, and a chat that reports to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from ctxhealth.client import Chat, Reporter, limits
from tests.client.server import TOKEN, Server
from tests.client.server import running as serving

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(limits, "LONGEST_DELAY_S", 0.05)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def chat(server: Server) -> Iterator[Chat]:
    reporter = Reporter(server.url, TOKEN, agent=f"wrapped-{next(_numbers)}")
    yield reporter.chat("c", window=1_000)
    server.stop()
    reporter.close(0)


def told(server: Server, chat: Chat) -> list[dict[str, Any]]:
    """Everything reported so far but the opening, without envelope and times."""
    assert chat.reporter.flush(10), chat.reporter.status()
    left_out = ("seq", "ts", "chat", "ms")
    return [
        {key: value for key, value in event.items() if key not in left_out}
        for event in server.events()
        if event["type"] not in ("chat.opened", "chat.updated")
    ]


def kinds(server: Server, chat: Chat) -> list[str]:
    return [event["type"] for event in told(server, chat)]


def only(server: Server, chat: Chat, kind: str) -> list[dict[str, Any]]:
    return [event for event in told(server, chat) if event["type"] == kind]
