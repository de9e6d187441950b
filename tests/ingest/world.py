"""The real link, writer and store with a transport that tests can lose things on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ctxhealth.ingest.link import Link
from ctxhealth.store.intake import Receipt
from ctxhealth.store.writer import Writer
from ctxhealth.store.writes.agents import Connected
from ctxhealth.wire.frames import Events

SECONDS = 20


class Wire:
    """What one connection would send, taken out by hand: nobody runs the sender."""

    def __init__(self, connected: Connected) -> None:
        self.link = Link(
            send=self._never,
            stream=connected.stream,
            conn_no=connected.conn_no,
            acked=connected.acked,
            token=1,
            sdk="",
            takes_commands=True,
        )

    async def _never(self, message: Any) -> None:
        raise AssertionError("nobody runs the sender")

    def send(self, writer: Writer, events: list[dict[str, Any]]) -> Receipt | None:
        """One frame through the link into the store and the answer back into the link."""
        raws = [msgspec.Raw(msgspec.json.encode(event)) for event in events]
        intakes = self.link.take(Events(epoch=self.link.stream.epoch, events=raws))
        if not intakes:
            return None
        self.link.inflight += len(intakes)
        came = threading.Event()
        answer: list[Receipt] = []

        def done(receipt: Receipt) -> None:
            answer.append(receipt)
            came.set()

        assert writer.submit_events(self.link.stream, self.link.conn_no, intakes, done)
        assert came.wait(SECONDS)
        self.link.answer(len(intakes), self.link.generation, answer[0])
        return answer[0]

    def sent(self) -> list[Any]:
        """The frames that would go out now."""
        return self.link.out._drain()


@dataclass
class Outbox:
    """An agent's memory: what it wrote and what it may forget. ``base`` is what was forgotten."""

    epoch: str
    events: list[dict[str, Any]] = field(default_factory=list)
    acked: int = 0

    @property
    def head(self) -> int:
        return len(self.events)

    def add(self, event: dict[str, Any]) -> None:
        self.events.append({**event, "seq": self.head + 1})

    def after(self, seq: int, count: int) -> list[dict[str, Any]]:
        return self.events[seq : seq + count]
