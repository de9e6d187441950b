"""One session of Reasonix: frames of its stream in, ctxhealth's events out. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ctxhealth.agents.reasonix.attempts import Attempts
from ctxhealth.agents.reasonix.calls import Calls
from ctxhealth.agents.reasonix.failures import is_empty_reply, model_error

Event = dict[str, Any]
Frame = Mapping[str, Any]
_OUTCOMES = {"completed": "answered", "failed": "error", "interrupted": "cancelled"}
_TOLD = 200


class Session:
    """``id`` is Reasonix's and the chat's. ``seq`` is that of the last frame of a turn."""

    def __init__(self, id: str, kept: Mapping[str, Any] | None = None) -> None:
        kept = kept or {}
        self.id = id
        self.seq: int | None = kept.get("seq")
        self.runtime: str | None = kept.get("runtime")
        self.committed: int | None = kept.get("committed")
        self.turn: str | None = kept.get("turn")
        self.wrote: bool = bool(kept.get("wrote"))
        self.facts: dict[str, Any] | None = kept.get("facts")
        self.told: list[str] = list(kept.get("told") or ())
        # Frames were lost while the stream stood: the transcript may know what they said.
        self.holes = False
        self.calls = Calls(kept.get("call"), int(kept.get("empty") or 0))
        self.attempts = Attempts(kept.get("attempt"))

    def state(self) -> dict[str, Any]:
        """What ``kept`` takes after a restart."""
        return {
            "seq": self.seq, "runtime": self.runtime, "committed": self.committed,
            "turn": self.turn, "wrote": self.wrote, "facts": self.facts, "told": self.told,
            "call": self.calls.open, "empty": self.calls.empty, "attempt": self.attempts.open,
        }  # fmt: skip

    def frame(self, frame: Frame, now: int) -> list[Event]:
        """What one frame says, in the protocol's events. ``now`` in milliseconds."""
        seq, before = frame.get("seq"), self.seq
        if type(seq) is int:
            if before is not None and 1 < seq <= before:
                # Looked up already when the stream was opened.
                return []
            self.seq = seq
        holes = [] if _is_break(frame) else missed(before, seq)
        self.holes = self.holes or bool(holes)
        handler = _HANDLERS.get(str(frame.get("kind")))
        found = handler(self, frame, now) if handler is not None else []
        return self.stamped([*holes, *found], now)

    def tick(self, now: int) -> list[Event]:
        """What has become certain because nothing came."""
        if not self.attempts.due(now):
            return []
        return self.stamped(self.attempts.finished({}, now), now)

    def is_running(self) -> bool:
        return self.turn is not None

    def has_told(self, item: str) -> bool:
        return item in self.told

    def add(self, item: str, **fields: Any) -> list[Event]:
        """A member of the history, once; what has no name is none that could be told apart."""
        if not item or item in self.told:
            return []
        self.told = [*self.told[-_TOLD + 1 :], item]
        text = fields.get("text")
        if isinstance(text, str):
            fields["chars"] = len(text)
        return [{"type": "message.added", "id": item, "turn": self.turn, **fields}]

    def start(self, turn: str) -> list[Event]:
        """A turn began; what an earlier one left open is over with it."""
        if turn == self.turn:
            return []
        self.turn, self.wrote = turn, False
        return [*self.calls.unseen(), {"type": "turn.started", "turn": turn, "kind": "user"}]

    def end(self, status: str, error: str | None = None) -> list[Event]:
        turn, self.turn = self.turn, None
        if turn is None:
            return []
        outcome = _OUTCOMES.get(status, "error")
        if outcome == "answered" and not self.wrote:
            outcome = "silent"
        said = error if outcome == "error" else None
        return [{"type": "turn.ended", "turn": turn, "outcome": outcome, "error": said}]

    def stamped(self, events: list[Event], now: int) -> list[Event]:
        """``events`` of this chat without what is unknown, at ``now`` where they say no time."""
        return [
            {
                "ts": now,
                "chat": self.id,
                **{key: value for key, value in event.items() if value is not None},
            }
            for event in events
        ]

    # -- frames

    def _turn_started(self, frame: Frame, now: int) -> list[Event]:
        # No turn begins while a compaction runs: the end of that one was not seen.
        return [*self.attempts.finished({}, now), *self.start(str(frame.get("turnId")))]

    def _turn_done(self, frame: Frame, now: int) -> list[Event]:
        status, said = str(frame.get("status")), str(frame.get("err") or "")
        ends = self._call_over(frame, status, said, now)
        started = self.start(str(frame.get("turnId"))) if self.turn is None else []
        return [*started, *ends, *self.end(status, said or None)]

    def _call_over(self, frame: Frame, status: str, said: str, now: int) -> list[Event]:
        if self.calls.open is None:
            return []
        if status == "completed" or is_empty_reply(said):
            return self.calls.unseen()
        error, code = model_error(_mapping(frame.get("diagnostic")), said)
        if status == "interrupted" and error == "other":
            error = "cancelled"
        return self.calls.fail(error, said, now, status=code)

    def _user_message(self, frame: Frame, now: int) -> list[Event]:
        return self.add(_name(frame.get("messageId")), role="user", kind="text", text=_text(frame))

    def _message(self, frame: Frame, now: int) -> list[Event]:
        text = _text(frame)
        self.calls.wrote(text)
        self.wrote = self.wrote or bool(text.strip())
        return self.add(_name(frame.get("messageId")), role="assistant", kind="text", text=text)

    def _reasoning(self, frame: Frame, now: int) -> list[Event]:
        self.calls.thought(str(frame.get("reasoning") or frame.get("text") or ""))
        return []

    def _stream_attempt(self, frame: Frame, now: int) -> list[Event]:
        attempt = _mapping(frame.get("streamAttempt"))
        action, reason = attempt.get("action"), str(attempt.get("reason") or "")
        if action == "begin":
            over = [*self.attempts.finished({}, now), *self.calls.unseen()]
            return [*over, *self.calls.begin(attempt, now)]
        if action == "discard":
            return self.calls.discard(reason, now)
        return self.calls.commit(reason, now) if action == "commit" else []

    def _usage(self, frame: Frame, now: int) -> list[Event]:
        usage = _mapping(frame.get("usage"))
        if usage.get("source") == "compaction":
            self.attempts.summarized(usage)
        elif usage.get("source") in ("executor", None):
            self.calls.billed(usage)
        return []

    def _tool_dispatch(self, frame: Frame, now: int) -> list[Event]:
        tool = _mapping(frame.get("tool"))
        name = _name(tool.get("id"))
        if name:
            self.calls.called(name)
        if tool.get("partial") or tool.get("refreshed"):
            return []
        return self.call_made(name, tool.get("name"), str(tool.get("args") or ""))

    def _tool_result(self, frame: Frame, now: int) -> list[Event]:
        tool = _mapping(frame.get("tool"))
        return self.call_answered(
            _name(tool.get("id")), tool.get("name"), str(tool.get("output") or "")
        )

    def call_made(self, call: str, name: Any, arguments: str) -> list[Event]:
        return self.add(
            call and f"{call}.call", role="assistant", kind="tool_call", calls=[call], name=name,
            text=arguments,
        )  # fmt: skip

    def call_answered(self, call: str, name: Any, output: str) -> list[Event]:
        return self.add(
            call and f"{call}.result", role="tool", kind="tool_result", answers=[call], name=name,
            text=output,
        )  # fmt: skip

    def _compaction_started(self, frame: Frame, now: int) -> list[Event]:
        return self.attempts.started(_mapping(frame.get("compaction")), frame.get("turnId"), now)

    def _compaction_done(self, frame: Frame, now: int) -> list[Event]:
        return self.attempts.done(_mapping(frame.get("compaction")), now)

    def _maintenance(self, frame: Frame, now: int) -> list[Event]:
        maintenance = _mapping(frame.get("maintenance"))
        return self.attempts.receipt(maintenance, now) if maintenance.get("status") else []

    def _notice(self, frame: Frame, now: int) -> list[Event]:
        if frame.get("text") == "compaction telemetry":
            self.attempts.telemetry(str(frame.get("detail") or ""))
            return []
        level = {"warn": "warning"}.get(str(frame.get("level")), frame.get("level"))
        if level not in ("warning", "error"):
            return []
        return [{"type": "note", "level": level, "text": f"Reasonix: {_text(frame)}"}]


def missed(before: int | None, seq: Any) -> list[Event]:
    """Frames of turns are numbered, and none is ever sent again."""
    if type(seq) is not int or before is None or seq <= before + 1:
        return []
    return [gap(seq - before - 1)]


def _is_break(frame: Frame) -> bool:
    """Reasonix numbers one entry of a broken-off turn that it does not stream."""
    return _mapping(frame.get("streamAttempt")).get("reason") == "interrupted"


def gap(count: int) -> Event:
    """``count`` frames, or at least so many entries of the session, went by unseen."""
    reason = "the event stream of Reasonix was interrupted, and it replays nothing"
    return {"type": "gap", "count": count, "reason": reason}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _text(frame: Frame) -> str:
    return str(frame.get("text") or "")


_HANDLERS: dict[str, Callable[[Session, Frame, int], list[Event]]] = {
    "turn_started": Session._turn_started,
    "turn_done": Session._turn_done,
    "user_message": Session._user_message,
    "message": Session._message,
    "reasoning": Session._reasoning,
    "stream_attempt": Session._stream_attempt,
    "usage": Session._usage,
    "tool_dispatch": Session._tool_dispatch,
    "tool_result": Session._tool_result,
    "compaction_started": Session._compaction_started,
    "compaction_done": Session._compaction_done,
    "context_maintenance": Session._maintenance,
    "notice": Session._notice,
}
