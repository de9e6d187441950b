"""Turns: a prompt and the loop it starts. An error may be tried again: the next row tells."""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.timeline import Part, Timeline


class Turns(Part):
    """``turn`` is the open one; ``error`` in it how its last request failed, if it did."""

    kept = ("turn",)

    def __init__(self, line: Timeline) -> None:
        self._line = line
        self.turn: dict[str, Any] | None = None

    @property
    def id(self) -> str | None:
        return self.turn["id"] if self.turn is not None else None

    def prompt(self, id: str, ts: int) -> None:
        self.settled(ts, superseded=True)
        self._start(id, ts, "user")

    def ensure(self, id: str, ts: int) -> None:
        """A reply without a prompt of its own: the loop goes on by itself."""
        if self.turn is None:
            self._start(id, ts, "continuation")

    def replied(self, held: str, ts: int) -> None:
        """``held``: text, tools or nothing. A reply that asks for no tool ends the turn."""
        if self.turn is not None:
            self.turn["error"] = None
        if held != "tools":
            self.end("answered" if held == "text" else "silent", ts)

    def failed(self, error: str) -> None:
        if self.turn is not None:
            self.turn["error"] = error[:400]

    def settled(self, ts: int, *, superseded: bool = False) -> None:
        """Nothing more of this turn came: an error was its end."""
        if self.turn is None:
            return
        if self.turn["error"] is not None:
            self.end("error", ts, self.turn["error"])
        elif superseded:
            self.end("cancelled", ts)

    def end(self, outcome: str, ts: int, error: str | None = None) -> None:
        if self.turn is not None:
            self._line.add("turn.ended", ts, turn=self.turn["id"], outcome=outcome, error=error)
        self.turn = None

    def _start(self, id: str, ts: int, kind: str) -> None:
        self.turn = {"id": f"t-{id}", "error": None}
        self._line.add("turn.started", ts, turn=self.turn["id"], kind=kind)
