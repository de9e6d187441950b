"""The events of one chat in the order they are told, some of them waiting for a later row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from ctxhealth.readers.base import Event
from ctxhealth.readers.times import in_order

# Nothing waits behind more events than this, so that memory stays bounded.
MOST_WAITING = 500


class Part:
    """A piece of a chat's state; ``kept`` names the attributes that a snapshot holds."""

    kept: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.kept}

    def restore(self, state: dict[str, Any]) -> None:
        for name in self.kept:
            setattr(self, name, state[name])


class Timeline(Part):
    """A queue with two places where it may stop.

    ``slot``: a reply that comes in several rows is told here, before the results of its calls.
    ``hold``: a finished compaction whose summary the next rows will show.
    """

    kept = ("queue", "latest", "slot", "hold")

    def __init__(self, chat: str) -> None:
        self.chat = chat
        self.queue: list[Event] = []
        self.latest = 0
        self.slot: int | None = None
        self.hold: int | None = None

    def make(self, type: str, ts: int, **fields: Any) -> Event:
        known = {key: value for key, value in fields.items() if value is not None}
        return {"type": type, "ts": ts, "chat": self.chat, **known}

    def add(self, type: str, ts: int, **fields: Any) -> None:
        self.queue.append(self.make(type, ts, **fields))

    def extend(self, events: Iterable[Event]) -> None:
        self.queue.extend(events)

    def open_slot(self) -> None:
        self.slot = len(self.queue)

    def fill_slot(self, events: list[Event]) -> None:
        at = len(self.queue) if self.slot is None else self.slot
        self.queue[at:at] = events
        self.slot = None

    def hold_last(self) -> None:
        self.hold = len(self.queue) - 1

    def release(self) -> None:
        """What was held is told as it stands."""
        self.hold = None

    @property
    def crowded(self) -> bool:
        return len(self.queue) > MOST_WAITING

    def take(self) -> list[Event]:
        """What is certain by now, with times that never step back."""
        stops = [at for at in (self.slot, self.hold) if at is not None]
        until = min(stops, default=len(self.queue))
        if until == 0:
            return []
        ready, self.queue = self.queue[:until], self.queue[until:]
        self.slot = None if self.slot is None else self.slot - until
        self.hold = None if self.hold is None else self.hold - until
        for event in ready:
            self.latest = in_order(event["ts"], self.latest)
            if event["ts"] != self.latest:
                event["row_ts"] = event["ts"]
                event["ts"] = self.latest
        return ready
