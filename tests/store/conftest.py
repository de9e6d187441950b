"""A writer's thread over the test database, and an agent that is connected to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ctxhealth.store import writes
from ctxhealth.store.intake import Intake, Receipt, StreamHandle
from ctxhealth.store.projects import default_project
from ctxhealth.store.writer import Writer
from ctxhealth.store.writes.agents import Connected
from ctxhealth.wire.frames import Capabilities, Hello
from tests.store.streams import intakes

COMMANDS = ["ping", "compact_fallback", "clear_latch", "snapshot"]
SECONDS = 20


def connect_agent(name: str = "a1", epoch: str = "e1", **caps: Any) -> Connected:
    wanted = Capabilities(**{"commands": COMMANDS, **caps})
    hello = Hello(protocols=[1], agent=name, epoch=epoch, caps=wanted)
    return writes.agent_connect(project=default_project().pk, hello=hello)


class Sender:
    """Submits as a connection does and waits for the receipt."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def later(
        self, stream: StreamHandle, conn_no: int | None, events: list[Any]
    ) -> Callable[[], Receipt]:
        """Queue; what it returns waits for the answer."""
        answers: list[Receipt] = []
        came = threading.Event()

        def done(receipt: Receipt) -> None:
            answers.append(receipt)
            came.set()

        ready = events if events and isinstance(events[0], Intake) else intakes(events)
        assert self.writer.submit_events(stream, conn_no, ready, done)

        def wait() -> Receipt:
            assert came.wait(SECONDS), "no receipt came"
            return answers[0]

        return wait

    def send(self, at: Connected, events: list[Any]) -> Receipt:
        return self.later(at.stream, at.conn_no, events)()


@pytest.fixture
def writer(transactional_db: None) -> Iterator[Writer]:
    made = Writer()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def sender(writer: Writer) -> Sender:
    return Sender(writer)
