"""The events of one session, in the order in which they are told."""

from __future__ import annotations

from typing import Any

from ctxhealth.agents.maka.host import Epoch
from ctxhealth.agents.maka.known import Known

Event = dict[str, Any]


class Telling:
    """``known`` is changed by what is told; ``events`` waits to be sent with it."""

    def __init__(self, known: Known, epoch: Epoch) -> None:
        self.known, self.epoch = known, epoch
        self.events: list[Event] = []

    def tell(self, kind: str, ts: int, /, **fields: Any) -> None:
        told = {key: value for key, value in fields.items() if value is not None}
        self.events.append({"type": kind, "ts": ts, "chat": self.known.id, **told})

    def note(self, ts: int, text: str, level: str = "info", code: str | None = None) -> None:
        self.tell("note", ts, text=text, level=level, code=code)

    def facts(self, ts: int, facts: dict[str, Any]) -> None:
        """Open the chat, or say what changed of it; what is not known stays as it was told."""
        known = self.known
        told = {key: value for key, value in facts.items() if value is not None}
        changed = {key: value for key, value in told.items() if known.facts.get(key) != value}
        if not known.opened:
            known.opened = True
            self.tell("chat.opened", ts, **told)
        elif changed or known.closed:
            self.tell("chat.updated", ts, **changed)
        known.closed = False
        known.facts.update(changed)

    def close(self, ts: int, reason: str) -> None:
        if self.known.opened and not self.known.closed:
            self.known.closed = True
            self.tell("chat.closed", ts, reason=reason)
