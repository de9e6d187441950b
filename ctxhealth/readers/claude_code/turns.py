"""Turns: a prompt and the loop it starts, ended by what the transcript shows of its end."""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.timeline import Part, Timeline
from ctxhealth.readers.values import short

_ENDS = ("end_turn", "stop_sequence", "refusal")
_CLOSED_BY_MARK = (*_ENDS, None)


class Turns(Part):
    """``turn`` is the open one: its id, replies so far and what the last of them held.

    ``kind`` is what a prompt starts here: ``user``, or ``task`` in a sub-agent, where nobody
    waits.
    """

    kept = ("turn", "command_at", "ended")

    def __init__(self, line: Timeline, kind: str) -> None:
        self._line = line
        self._kind = kind
        self.turn: dict[str, Any] | None = None
        self.command_at: int | None = None
        self.ended = 0

    @property
    def id(self) -> str | None:
        return self.turn["id"] if self.turn is not None else None

    def started(self, uuid: str, ts: int, kind: str) -> Event:
        """The event that opens a turn; the caller puts it where it belongs."""
        kind = self._kind if kind == "user" else kind
        self.turn = {"id": f"t-{short(uuid)}", "replies": 0, "held": "", "finish": None, "empty": 0}
        self.command_at = None
        return self._line.make("turn.started", ts, turn=self.turn["id"], kind=kind)

    def prompt(self, uuid: str, ts: int, kind: str, open_calls: bool) -> None:
        """A prompt ends the turn before it and starts its own."""
        if self.turn is not None:
            self.end(self._superseded(open_calls), ts)
        self._line.extend([self.started(uuid, ts, kind)])

    def ensure(self, uuid: str, ts: int) -> list[Event]:
        """A request without a prompt of its own: a command expanded to one, or the loop goes on."""
        if self.turn is not None:
            return []
        if self.command_at is not None:
            return [self.started(uuid, self.command_at, "user")]
        return [self.started(uuid, ts, "continuation")]

    def replied(self, held: str, finish: str | None) -> None:
        """``held``: text, tools, thinking or nothing."""
        if self.turn is not None:
            self.turn["replies"] += 1
            self.turn["held"], self.turn["finish"] = held, finish
            if held in ("text", "tools"):
                self.turn["empty"] = 0

    def grown(self, held: str, finish: str | None) -> None:
        """More of the last reply, which was told before it was whole."""
        if self.turn is None or not self.turn["replies"]:
            return
        if held == "tools" or (held == "text" and self.turn["held"] != "tools"):
            self.turn["held"], self.turn["empty"] = held, 0
        self.turn["finish"] = finish or self.turn["finish"]

    def empty(self) -> None:
        if self.turn is not None:
            self.turn["empty"] += 1

    def over(self, ts: int, open_calls: bool) -> None:
        """After a reply that says itself that it ends the turn."""
        if self.turn is not None and self.turn["finish"] in _ENDS and not open_calls:
            self._visible_end(ts)

    def marked(self, ts: int, open_calls: bool) -> None:
        """A row that Claude Code writes when a turn is over."""
        if self.turn is None or open_calls or self.turn["held"] == "tools":
            return
        if self.turn["empty"]:
            self.end("silent", ts)
        elif self.turn["replies"] and self.turn["finish"] in _CLOSED_BY_MARK:
            self._visible_end(ts)

    def settled(self, ts: int, open_calls: bool) -> None:
        """Nothing came for a while: a visible answer without open calls is the end."""
        if self.turn is None or open_calls or self.turn["held"] != "text":
            return
        if self.turn["finish"] in _CLOSED_BY_MARK:
            self.end("answered", ts)

    def end(self, outcome: str, ts: int, error: str | None = None) -> None:
        if self.turn is None:
            return
        self._line.add("turn.ended", ts, turn=self.turn["id"], outcome=outcome, error=error)
        self.turn = None
        self.ended += 1

    def _visible_end(self, ts: int) -> None:
        assert self.turn is not None
        self.end("answered" if self.turn["held"] == "text" else "silent", ts)

    def _superseded(self, open_calls: bool) -> str:
        assert self.turn is not None
        if self.turn["held"] == "text" and not open_calls:
            return "answered"
        return "silent" if self.turn["empty"] else "cancelled"
