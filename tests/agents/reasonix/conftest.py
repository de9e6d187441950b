"""A fake Reasonix, the server's half of the protocol, and bridges between them."""

from __future__ import annotations

import io
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.agents import reasonix
from ctxhealth.agents.bridging import CannotBridge, Line, Words
from ctxhealth.agents.reasonix import bridge as running
from ctxhealth.agents.reasonix.bridge import Bridge
from ctxhealth.agents.reasonix.host import Host
from ctxhealth.agents.reasonix.orders import COMMANDS, Orders
from ctxhealth.client import limits
from tests.agents.reasonix.fake import TOKEN as REASONIX_TOKEN
from tests.agents.reasonix.fake import Fake
from tests.client.server import TOKEN, Server, eventually
from tests.client.server import running as serving


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pace of coming back is nothing to wait for in a test."""
    monkeypatch.setattr(limits, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(limits, "LONGEST_DELAY_S", 0.05)
    monkeypatch.setattr(running, "_FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(running, "_LONGEST_PAUSE_S", 0.05)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def fake() -> Iterator[Fake]:
    made = Fake().start()
    yield made
    made.stop()


def options(server: Server, fake: Fake, state: Path, *more: str) -> Namespace:
    parser = ArgumentParser()
    reasonix.arguments(parser)
    given = [
        "--url", server.url, "--token", TOKEN, "--state", str(state), "--reasonix", fake.url,
        "--reasonix-token", REASONIX_TOKEN, *more,
    ]  # fmt: skip
    return parser.parse_args(given)


class Running:
    """One bridge in a thread; ``said`` is what its user read."""

    def __init__(self, options: Namespace) -> None:
        self.out = io.StringIO()
        words = Words(out=self.out, err=self.out)
        commands = () if options.read_only else COMMANDS
        self.line = Line(options, words, product="reasonix", source="test", commands=commands)
        self.bridge = Bridge(Host(options.reasonix, lambda: REASONIX_TOKEN), self.line, words)
        if commands:
            Orders(self.bridge).serve(self.line.reporter)
        self.ended: CannotBridge | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def said(self) -> str:
        return self.out.getvalue()

    def stop(self) -> None:
        self.bridge.stop()
        self._thread.join(10)
        self.line.close()

    def _run(self) -> None:
        try:
            self.bridge.run(0.02)
        except CannotBridge as error:
            self.ended = error


Start = Callable[..., Running]


@pytest.fixture
def start(server: Server, fake: Fake, tmp_path: Path) -> Iterator[Start]:
    """Starts a bridge over the same state folder each time; connected when it returns."""
    made: list[Running] = []

    def begin(*more: str) -> Running:
        bridge = Running(options(server, fake, tmp_path / "state", *more))
        made.append(bridge)
        eventually(lambda: bridge.bridge.connected, "the bridge to connect")
        return bridge

    yield begin
    for bridge in made:
        bridge.stop()


def bodies(server: Server, kind: str, *fields: str) -> list[tuple[Any, ...]]:
    """Of each event of a type, the named fields."""
    return [tuple(event.get(field) for field in fields) for event in server.events(kind)]
