"""One session: what was pulled of it in, the events of the protocol out. No input or output here.

The transcript gives the order; a turn's requests stand between its messages by their times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ctxhealth.agents.maka import decisions
from ctxhealth.agents.maka.composition import compose
from ctxhealth.agents.maka.host import Epoch
from ctxhealth.agents.maka.known import Known, Turn
from ctxhealth.agents.maka.telling import Event, Telling
from ctxhealth.agents.maka.turns import Turns

Frame = dict[str, Any]
_ENDS = ("completed", "failed", "aborted")
_SAID = ("user", "assistant", "tool_call", "tool_result")


@dataclass
class Pulled:
    """One look at a session. ``traces``: turn -> its trace. ``checkpoints``: turn -> ids written
    in it, absent where nobody asked. ``untraced``: turns whose trace the host does not tell, as
    they are too long. ``root``: the root turn's snapshot, the newest."""

    at: int
    item: Frame | None = None
    messages: list[tuple[int, Frame]] = field(default_factory=list)
    traces: dict[str, Frame] = field(default_factory=dict)
    checkpoints: dict[str, list[str]] = field(default_factory=dict)
    untraced: set[str] = field(default_factory=set)
    diagnostics: Frame | None = None
    root: Frame | None = None


def look(known: Known, epoch: Epoch, pulled: Pulled) -> list[Event]:
    """The events of this look; ``known`` moves on with them."""
    return _Look(known, epoch, pulled).events()


class _Look:
    def __init__(self, known: Known, epoch: Epoch, pulled: Pulled) -> None:
        self._known, self._pulled = known, pulled
        self._to = Telling(known, epoch)
        self._turns = Turns(self._to, pulled.checkpoints)

    def events(self) -> list[Event]:
        known, pulled = self._known, self._pulled
        first = pulled.messages[0][1].get("ts") if pulled.messages else None
        if pulled.item is not None and not pulled.item.get("isArchived"):
            self._facts(first if not known.opened and first else pulled.at)
        for sequence, message in pulled.messages:
            self._message(message)
            known.cursor = sequence
        turn = known.turn
        if turn is not None:
            self._requests(turn, None)
            self._newest(turn)
        self._turns.settle()
        if pulled.diagnostics is not None and pulled.diagnostics.get("status") == "available":
            compose(self._to, pulled.diagnostics)
        self._waiting()
        if pulled.item is not None and pulled.item.get("isArchived"):
            self._to.close(pulled.at, "archived in Maka")
        return self._to.events

    # -- the chat

    def _facts(self, ts: int) -> None:
        item = self._pulled.item or {}
        found = self._pulled.diagnostics or {}
        window = found.get("contextWindow") or self._window()
        sub = item.get("subagent") or {}
        labels = {"runtime": "maka", "connection": item.get("llmConnectionSlug"),
                  "agent": sub.get("agentName") or sub.get("agentId")}  # fmt: skip
        self._to.facts(ts, {
            "title": item.get("name"), "model": item.get("model"),
            "provider": found.get("providerId"), "window": window,
            "parent": item.get("parentSessionId") or sub.get("parentSessionId"),
            "trigger": self._to.epoch.trigger(window),
            "labels": {key: str(value) for key, value in labels.items() if value},
        })  # fmt: skip

    def _window(self) -> int | None:
        """Of the newest request of this look: what Maka metered it against."""
        found = [
            (attempt.get("completedAt") or 0, attempt.get("contextWindow"))
            for trace in self._pulled.traces.values()
            for step in trace.get("steps", [])
            for attempt in step.get("attempts", [])
            if attempt.get("contextWindow")
        ]
        return max(found)[1] if found else None

    # -- messages

    def _message(self, message: Frame) -> None:
        kind, name = message.get("type"), message.get("turnId")
        if not message or name in self._known.ended:
            return
        if not name:
            self._note(message)
            return
        before = self._known.turn
        if before is not None and before.id != name:
            self._requests(before, None, ended=True)
            self._turns.ended(before, int(message["ts"]), "aborted", "Maka went on without a word")
        turn = self._turns.of(str(name), self._run(str(name)))
        ends = kind == "turn_state" and message.get("status") in _ENDS
        # What Maka writes at a turn's end speaks of all its requests.
        last = ends or kind in ("token_usage", "system_note")
        self._requests(turn, None if last else int(message["ts"]), ended=last)
        if last:
            self._newest(turn)
        if kind in _SAID:
            self._turns.message(turn, message)
        elif kind == "token_usage":
            decisions.take(self._to, turn, message)
        elif kind == "system_note":
            self._note(message)
        elif ends:
            self._turns.ended(turn, int(message["ts"]), message["status"], self._error(message))

    def _run(self, turn: str) -> str | None:
        trace = self._pulled.traces.get(turn)
        return trace.get("runId") if trace else None

    def _error(self, message: Frame) -> str | None:
        """The failure's class, with the words that only the live snapshot has."""
        error = message.get("errorClass") or message.get("abortSource")
        root = self._pulled.root or {}
        if root.get("turnId") == message.get("turnId") and root.get("failureMessage"):
            return f"{error}: {root['failureMessage']}"
        return str(error) if error else None

    def _note(self, message: Frame) -> None:
        """Maka's own notes; the one of every turn says nothing."""
        kind = str(message.get("kind") or "")
        if message.get("type") != "system_note" or kind in ("session_resume", "session_start"):
            return
        level = "warning" if kind.startswith("context_") or kind == "error" else "info"
        self._to.note(int(message.get("ts") or self._pulled.at), f"Maka notes: {kind}.", level,
                      code=kind)  # fmt: skip

    # -- requests

    def _requests(self, turn: Turn, until: int | None, *, ended: bool = False) -> None:
        """Tell the requests of this turn that were not told yet, up to a time.

        The trace may be ahead of the transcript: what follows a reply that calls tools waits
        until the calls stand there, unless the turn has ended.
        """
        for at, act, step, attempt in self._acts(turn):
            if until is not None and at > until:
                return
            if act == "sent" and not ended and self._turns.awaits_calls(turn):
                return
            name = f"{attempt['attemptId']}{'' if act == 'sent' else '.'}"
            turn.attempts.append(name)
            getattr(self._turns, act)(turn, step, attempt)

    def _newest(self, turn: Turn) -> None:
        """Of a turn that is too long for a trace the newest request alone is known."""
        found = self._pulled.diagnostics or {}
        if turn.id in self._pulled.untraced and found.get("status") == "available":
            self._turns.newest(turn, found)

    def _acts(self, turn: Turn) -> Iterator[tuple[int, str, Frame, Frame]]:
        """(time, sent or settled, step, attempt), each once, in order of time."""
        known = set(turn.attempts)
        steps = self._pulled.traces.get(turn.id, {}).get("steps", [])
        calls: Iterable[Frame] = (step for step in steps if step.get("kind") == "model_call")
        acts: list[tuple[int, str, Frame, Frame]] = []
        for step in calls:
            for attempt in step.get("attempts", []):
                if attempt["attemptId"] not in known:
                    acts.append((attempt["startedAt"], "sent", step, attempt))
                if f"{attempt['attemptId']}." not in known:
                    acts.append((attempt["completedAt"], "settled", step, attempt))
        # "sent" before "settled" where both fall into one millisecond.
        return iter(sorted(acts, key=lambda act: (act[0], act[1])))

    def _waiting(self) -> None:
        """The root turn's snapshot alone says that Maka waits for the user."""
        root, turn = self._pulled.root, self._known.turn
        if root is None or turn is None or root.get("turnId") != turn.id:
            return
        turn.run = root.get("runId") or turn.run
        self._turns.waits(turn, self._pulled.at, root.get("status") == "waiting_for_user")
