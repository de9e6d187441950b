"""A real server half per test, and reporters that are closed whatever happens."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ctxhealth.client import Reporter, limits
from tests.client.server import TOKEN, Server, running

_numbers = itertools.count(1)
Make = Callable[..., Reporter]


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def _quick_reconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pace of reconnecting is tested by itself; elsewhere nobody waits for it."""
    monkeypatch.setattr(limits, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(limits, "LONGEST_DELAY_S", 0.05)


@pytest.fixture
def make(server: Server) -> Iterator[Make]:
    """Makes reporters for the server; each closed at the end without waiting for acks."""
    made: list[Reporter] = []

    def build(**options: Any) -> Reporter:
        options.setdefault("url", server.url)
        options.setdefault("token", TOKEN)
        options.setdefault("agent", f"agent-{next(_numbers)}")
        reporter = Reporter(**options)
        made.append(reporter)
        return reporter

    yield build
    server.stop()
    for reporter in made:
        reporter.close(0.0)
