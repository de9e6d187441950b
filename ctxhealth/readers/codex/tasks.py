"""Tasks and the turns in them. A task without a prompt is a compaction that was asked for."""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.timeline import Part, Timeline


class Tasks(Part):
    """``task`` is the running one, ``turn`` the id of the turn that is open in it.

    ``kind`` is what a prompt starts here: ``user``, or ``task`` in a spawned thread, where
    nobody waits. ``context``: the row that is written right before the first request was seen.
    """

    kept = ("task", "turn", "kind", "count")

    def __init__(self, line: Timeline) -> None:
        self._line = line
        self.task: dict[str, Any] | None = None
        self.turn: str | None = None
        self.kind = "user"
        self.count = 0

    def started(self, id: str | None) -> None:
        self.count += 1
        self.task = {
            "id": (id or f"task-{self.count}")[:200], "prompted": False, "context": False,
            "replies": 0, "held": "",
        }  # fmt: skip

    def prompt(self, ts: int) -> bool:
        """A prompt; False where it only joins a turn that runs already."""
        if self.task is None:
            self.started(None)
        assert self.task is not None
        self.task["prompted"] = True
        if self.turn is not None:
            return False
        self._line.extend([self._start(ts, self.kind)])
        return True

    def ensure(self, ts: int) -> list[Event]:
        """A reply without a prompt of its own: the loop goes on by itself."""
        if self.turn is not None:
            return []
        if self.task is None:
            self.started(None)
        return [self._start(ts, "continuation" if self.kind == "user" else self.kind)]

    def replied(self, held: str) -> None:
        if self.task is not None:
            self.task["replies"] += 1
            self.task["held"] = held

    def end(self, outcome: str, ts: int, error: str | None = None) -> None:
        """The turn ends with its task; nothing where the task had none."""
        if self.turn is not None:
            self._line.add("turn.ended", ts, turn=self.turn, outcome=outcome, error=error)
        self.task = self.turn = None

    @property
    def phase(self) -> str:
        """Where in the turn a compaction stands now."""
        if self.task is None:
            return "between_turns"
        return "mid_turn" if self.task["replies"] else "pre_turn"

    def _start(self, ts: int, kind: str) -> Event:
        assert self.task is not None
        self.turn = self.task["id"]
        return self._line.make("turn.started", ts, turn=self.turn, kind=kind)
