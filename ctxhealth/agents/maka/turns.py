"""Turns, messages and requests of one session, in the order in which Maka wrote them down."""

from __future__ import annotations

from typing import Any

from ctxhealth.agents.maka import folds, latches
from ctxhealth.agents.maka.known import Held, Turn
from ctxhealth.agents.maka.telling import Telling
from ctxhealth.agents.maka.words import model_error, usage_of

Frame = dict[str, Any]
_SUMMARIZERS = ("history_compact", "semantic_compact")


class Turns:
    """``checkpoints``: turn -> ids of those written in it; absent where that is not known."""

    def __init__(self, to: Telling, checkpoints: dict[str, list[str]]) -> None:
        self._to, self._known = to, to.known
        self._checkpoints = checkpoints

    # -- turns

    def of(self, turn: str, run: str | None = None) -> Turn:
        """The open turn of this name, begun where there is none."""
        found = self._known.turn
        if found is None or found.id != turn:
            found = self._known.turn = Turn(turn)
        if run:
            found.run = run
        return found

    def began(self, turn: Turn, ts: int, kind: str) -> None:
        turn.bare = False
        if not turn.told:
            turn.told = True
            self._known.latch = None
            self._to.tell("turn.started", ts, turn=turn.id, kind=kind)

    def ended(self, turn: Turn, ts: int, status: str, error: str | None) -> None:
        """``status``: completed, failed or aborted."""
        self._release(turn, ended=status == "completed")
        if turn.fold is not None:
            folds.close_by_end(self._to, turn, ts, self._checkpoint(turn))
        latches.at_end(self._to, turn, ts, status)
        if error == "context_budget_exhausted":
            window = self._known.facts.get("window")
            self._to.tell("guard.refused", ts, code=error, window=window)
        if turn.told:
            self._resumed(turn, ts)
            outcome = _outcome(turn, status)
            self._to.tell("turn.ended", ts, turn=turn.id, outcome=outcome, error=error)
        self._known.end(turn.id)

    def waits(self, turn: Turn, ts: int, waiting: bool) -> None:
        """Maka asks the user something: until they answer it is not they who wait."""
        if waiting and not turn.waits and turn.told:
            turn.waits = True
            self._to.note(ts, "Maka waits for the user.", code="waiting_for_user")
            self._to.tell("turn.ended", ts, turn=turn.id, outcome="answered")
        elif not waiting:
            self._resumed(turn, ts)

    def _resumed(self, turn: Turn, ts: int) -> None:
        if turn.waits:
            turn.waits = False
            self._to.tell("turn.started", ts, turn=turn.id, kind="continuation")

    # -- messages

    def message(self, turn: Turn, message: Frame) -> None:
        """What was said or called; of its text only the length, unless the owner wants more."""
        kind, ts = message["type"], int(message["ts"])
        size = _size(message)
        self._known.add_size(turn.id, size)
        if kind == "user":
            self.began(turn, ts, "task" if message.get("origin") else "user")
            self._add(turn, message, size, role="user", kind="text", text=message.get("text"))
        elif kind == "assistant":
            text = str(message.get("text") or "")
            turn.spoke = turn.spoke or bool(text.strip())
            if turn.held is not None:
                turn.held.chars += len("".join(text.split()))
            self._add(turn, message, size, role="assistant", kind="text", text=text)
        elif kind == "tool_call":
            turn.spoke = True
            if turn.held is not None:
                turn.held.calls += 1
            self._add(turn, message, size, role="assistant", kind="tool_call",
                      calls=[message["id"]], name=message.get("toolName"))  # fmt: skip
        elif kind == "tool_result":
            turn.pairs += 1
            self._add(turn, message, size, role="tool", kind="tool_result",
                      answers=[message["toolUseId"]])  # fmt: skip

    def _add(self, turn: Turn, message: Frame, size: int, *, kind: str, **fields: Any) -> None:
        self._to.tell(
            "message.added", int(message["ts"]), id=message["id"], turn=turn.id, chars=size,
            kind=kind, **fields,
        )  # fmt: skip

    # -- requests

    def sent(self, turn: Turn, step: Frame, attempt: Frame) -> None:
        """A provider request; it is told once it is settled, as Maka does."""
        ts, kind = attempt["startedAt"], step.get("callKind")
        if kind == "main" or kind in _SUMMARIZERS:
            self._release(turn)
        if kind == "main":
            if not turn.told:
                self.began(turn, ts, "task")
            if turn.fold is not None:
                after = attempt.get("inputTokens")
                folds.close_by_request(self._to, turn, ts, after, self._checkpoint(turn))
            latches.before_request(self._to, turn, ts)
            self._to.tell("request.sent", ts, request=attempt["attemptId"])
            return
        fold = folds.begin(self._to, turn, step, attempt) if kind in _SUMMARIZERS else None
        self._to.tell(
            "request.sent", ts, request=attempt["attemptId"], purpose="utility", call=kind,
            attempt=fold.attempt if fold else None,
        )  # fmt: skip

    def settled(self, turn: Turn, step: Frame, attempt: Frame) -> None:
        ts, kind = attempt["completedAt"], step.get("callKind")
        if kind in _SUMMARIZERS and turn.fold is not None:
            folds.called(turn.fold, attempt)
        if attempt.get("status") != "completed":
            self._failed(turn, kind, attempt, ts)
            return
        fields = {
            "usage": usage_of(attempt), "finish": attempt.get("finishReason"),
            "model": step.get("modelId"), "ms": attempt.get("latencyMs"),
        }  # fmt: skip
        if kind != "main":
            request = attempt["attemptId"]
            self._to.tell("model.replied", ts, request=request, purpose="utility", **fields)
            return
        turn.requests += 1
        turn.overflowed = False
        self._known.answered_at = ts
        turn.held = Held(attempt["attemptId"], ts, fields)
        if fields["usage"] is not None:
            self._known.load = attempt["inputTokens"]

    def newest(self, turn: Turn, found: Frame) -> None:
        """One request by ``context.diagnostics``: no output, no content, but its size."""
        at, tokens = int(found.get("completedAt") or 0), found.get("inputTokens")
        if not turn.untraced:
            turn.untraced = True
            self._to.note(
                at, "This turn is too long for Maka to tell all its requests: from here on the "
                "newest one is shown, and compactions at the turn's end.", code="untraced",
            )  # fmt: skip
        if at <= self._known.answered_at:
            return
        self._release(turn)
        self._known.answered_at = at
        turn.requests += 1
        usage = {"dialect": "openai", "input": tokens, "cache_read":
                 found.get("cacheReadInputTokens")} if tokens else None  # fmt: skip
        self._known.load = tokens or self._known.load
        request = f"newest-{at}"
        self._to.tell("request.sent", at, request=request)
        self._to.tell("model.replied", at, request=request, usage=usage,
                      model=found.get("modelId"))  # fmt: skip

    def awaits_calls(self, turn: Turn) -> bool:
        """Whether the last reply called tools that the transcript does not show yet."""
        held = turn.held
        return held is not None and not held.calls and "tool" in str(held.fields.get("finish"))

    def settle(self) -> None:
        """Nothing more is known now: a reply whose content has come is told."""
        turn = self._known.turn
        if turn is not None and turn.held is not None and (turn.held.calls or turn.held.chars):
            self._release(turn)

    def _failed(self, turn: Turn, kind: Any, attempt: Frame, ts: int) -> None:
        error = model_error(attempt)
        main = kind == "main"
        self._to.tell(
            "model.failed", ts, request=attempt["attemptId"], error=error,
            purpose=None if main else "utility", status=attempt.get("httpStatus"),
            code=attempt.get("providerCode"), detail=attempt.get("errorClass"),
            ms=attempt.get("latencyMs"),
        )  # fmt: skip
        turn.overflowed = error == "overflow" if main else turn.overflowed

    def _release(self, turn: Turn, ended: bool = False) -> None:
        """Tell the reply with its content; a completed turn that wrote none had none."""
        held, turn.held = turn.held, None
        if held is None:
            return
        content: dict[str, int] | None = {"text_chars": held.chars, "tool_calls": held.calls}
        if not held.chars and not held.calls and not ended:
            content = None
        self._to.tell("model.replied", held.at, request=held.request, content=content,
                      **held.fields)  # fmt: skip

    def _checkpoint(self, turn: Turn) -> bool | None:
        found = self._checkpoints.get(turn.id)
        if found is None:
            return None
        new = [checkpoint for checkpoint in found if self._known.meet(checkpoint)]
        return bool(new)


def _outcome(turn: Turn, status: str) -> str:
    if status == "completed":
        return "answered" if turn.spoke else "silent"
    return "cancelled" if status == "aborted" else "error"


def _size(message: Frame) -> int:
    """Characters that go to the model, roughly: text, arguments or result."""
    if message["type"] in ("user", "assistant"):
        return len(str(message.get("text") or ""))
    return _length(message.get("args" if message["type"] == "tool_call" else "content"))


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + _length(part) for key, part in value.items())
    if isinstance(value, list):
        return sum(map(_length, value))
    return 0 if value is None else len(str(value))
