"""Chats made the way agents make them, without a socket: events through the store's own door."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import msgspec

from ctxhealth.store import queries, through, unit, writes
from ctxhealth.store.intake import Receipt, intake_of, tombstone_of
from ctxhealth.store.projects import default_project
from ctxhealth.store.writes.agents import Connected
from ctxhealth.wire import Reject, decode_event
from ctxhealth.wire.frames import Capabilities, Hello

COMMANDS = ["compact_fallback", "clear_latch", "continue", "snapshot", "ping"]
Body = dict[str, Any]


class Agent:
    """An agent's stream: numbers its events and submits them."""

    def __init__(self, name: str = "robot", commands: Iterable[str] = COMMANDS) -> None:
        caps = Capabilities(commands=list(commands), fallback="engine")
        hello = Hello(protocols=[1], agent=name, epoch=f"epoch-{name}", caps=caps, runtime="test")
        self.connected: Connected = writes.agent_connect(project=default_project().pk, hello=hello)
        self.seq = self.connected.acked

    def report(self, *bodies: Body) -> Receipt:
        intakes = []
        for body in bodies:
            self.seq += 1
            whole = {"seq": self.seq, "ts": now(), **body}
            raw = msgspec.json.encode(whole)
            try:
                intakes.append(intake_of(decode_event(raw)))
            except Reject as problem:
                intakes.append(tombstone_of(problem, raw, self.seq, now()))

        def submit() -> Receipt:
            work = unit.current()
            assert work is not None
            return work.submit(self.connected.stream, self.connected.conn_no, intakes)

        return through.call(submit)

    def chat(self, name: str, load: int | None = None, **facts: Any) -> int:
        """Open a chat, with one answered turn where ``load`` says how large; its number here."""
        facts = {"title": f"Chat {name}", "window": 200_000, "model": "model-x", **facts}
        self.report({"type": "chat.opened", "chat": name, **facts})
        if load is not None:
            self.turn(name, load)
        found = queries.chat_find(self.connected.stream.agent_name, name)
        assert found is not None
        return found.id

    def turn(self, chat: str, load: int) -> None:
        turn = f"turn-{self.seq}"
        self.report(*answered(chat, turn, load))


def quota_gone(robot: Agent, name: str, model: str = "glm-flash") -> int:
    """A chat above its trigger whose summarizer has no quota left; its number."""
    pk = robot.chat(name, 60_000, trigger={"tokens": 50_000, "scope": "prompt"})
    fails = {"model": model, "provider": "zai", "calls": 1, "error": "quota"}
    for attempt in ("a1", "a2", "a3"):
        told = {"chat": name, "attempt": attempt, "before": 60_000, "scope": "prompt"}
        robot.report(
            {"type": "compaction.started", "trigger": "proactive", **told},
            {"type": "compaction.finished", "reported": "failed", "after": 60_000,
             "summarizer": fails, **told},
        )  # fmt: skip
        robot.turn(name, 60_000)
    return pk


def answered(chat: str, turn: str, load: int) -> list[Body]:
    request = f"request-{turn}"
    return [
        {"type": "turn.started", "chat": chat, "turn": turn, "kind": "user"},
        {"type": "request.sent", "chat": chat, "request": request, "local": load},
        {
            "type": "model.replied",
            "chat": chat,
            "request": request,
            "usage": {"dialect": "openai", "input": load, "output": 100},
            "finish": "stop",
            "content": {"text_chars": 80, "tool_calls": 0, "thinking_chars": 0, "data": 0},
        },
        {"type": "turn.ended", "chat": chat, "turn": turn, "outcome": "answered"},
    ]


def encoded(seq: int, body: Body) -> bytes:
    """The event as an agent would send it now."""
    return msgspec.json.encode({"seq": seq, "ts": now(), **body})


def now() -> int:
    return time.time_ns() // 1_000_000
