"""A chat told event by event: through the wire's decoder into the fold, as the writer does it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ctxhealth.core.changes import Changes
from ctxhealth.core.deadlines import next_deadline
from ctxhealth.core.fold import Stamp, fold, new_state
from ctxhealth.core.model import ChatDetail, ChatSummary, FindingView
from ctxhealth.core.rules import Rules, default_rules
from ctxhealth.core.view import detail, summary
from ctxhealth.wire import decode_event
from ctxhealth.wire.events import (
    Event,
    ServerCommand,
    ServerConnected,
    ServerDisconnected,
    ServerTick,
)

SECOND = 1_000
MINUTE = 60 * SECOND
COMMANDS = (
    "compact_fallback", "clear_latch", "compact_summarize", "continue", "stop_turn", "rescue",
    "repair_pairs", "restore_backup", "snapshot", "ping",
)  # fmt: skip


def wire_event(type: str, *, seq: int = 1, ts: int = 0, **fields: Any) -> Event:
    """An event as an agent sends it, decoded; absent fields are left out."""
    named = {key.rstrip("_"): value for key, value in fields.items() if value is not None}
    raw = {"seq": seq, "ts": ts, "chat": "c", "type": type, **named}
    return decode_event(json.dumps(raw).encode()).event


class Story:
    """One chat of a connected agent. Every event takes one second unless ``wait`` says more."""

    def __init__(
        self, *, rules: Rules | None = None, live: bool = True, read_only: bool = False
    ) -> None:
        self.rules = rules or default_rules()
        self.state = new_state("c", 0)
        self.changes = Changes()
        self.seq = 0
        self.at = 0
        self.requests = 0
        if live:
            self.connected(read_only=read_only)

    # events

    def put(self, event: Event, at: int | None = None) -> Story:
        self.seq += 1
        self.at = self.at + SECOND if at is None else at
        fold(self.state, event, Stamp(self.seq, self.at), self.changes, self.rules)
        internal = [odd for odd in self.changes.oddities if "internal" in odd]
        assert internal == []
        return self

    def say(self, type: str, **fields: Any) -> Story:
        return self.put(wire_event(type, seq=self.seq + 1, ts=self.at + SECOND, **fields))

    def wait(self, ms: int) -> Story:
        self.at += ms
        return self

    def tick(self, *, after: int = 0) -> Story:
        """The server's own event; ``after`` ms later than the last one."""
        return self.put(ServerTick(seq=1, ts=0), self.at + after)

    def put_tick_at(self, at: int) -> Story:
        return self.put(ServerTick(seq=1, ts=0), at)

    def tick_when_due(self) -> Story:
        due = next_deadline(self.state, self.rules)
        assert due is not None, "no deadline is set"
        return self.put(ServerTick(seq=1, ts=0), due)

    def connected(
        self, *, read_only: bool = False, commands: Sequence[str] = COMMANDS, **more: Any
    ) -> Story:
        return self.put(
            ServerConnected(
                seq=1, ts=0, conn_no=1, read_only=read_only, commands=list(commands), **more
            )
        )

    def disconnected(self) -> Story:
        return self.put(ServerDisconnected(seq=1, ts=0, conn_no=1, reason="closed"))

    def command(self, kind: str, state: str = "queued", command: str = "cmd1") -> Story:
        return self.put(
            ServerCommand(seq=1, ts=0, command=command, kind=kind, state=state, by="op")
        )

    # short forms

    def opened(self, **facts: Any) -> Story:
        return self.say("chat.opened", **{"model": "test-model", "window": 200_000, **facts})

    def turn(self, turn: str = "t1", kind: str = "user") -> Story:
        return self.say("turn.started", turn=turn, kind=kind)

    def ends(self, outcome: str = "answered", turn: str = "t1", error: str | None = None) -> Story:
        return self.say("turn.ended", turn=turn, outcome=outcome, error=error)

    def message(self, tokens: int | None = 100, **fields: Any) -> Story:
        item = f"m{self.seq + 1}"
        given = {"id": item, "role": "user", "kind": "text", "tokens": tokens, **fields}
        return self.say("message.added", **given)

    def ask(self, **fields: Any) -> str:
        """A request of the chat leaves; returns its id."""
        self.requests += 1
        request = f"r{self.requests}"
        self.say("request.sent", request=request, **fields)
        return request

    def reply(
        self,
        prompt: int | None,
        *,
        request: str | None = None,
        text: int = 40,
        local: int | None = None,
        sent: dict[str, Any] | None = None,
        **fields: Any,
    ) -> Story:
        """A request and its reply with the provider's count (OpenAI's dialect)."""
        name = request or self.ask(local=local, **(sent or {}))
        usage = None if prompt is None else {"dialect": "openai", "input": prompt, "output": 50}
        given = {"usage": usage, "content": {"text_chars": text}, "finish": "stop", **fields}
        return self.say("model.replied", request=name, **given)

    def empty(self, prompt: int | None, **fields: Any) -> Story:
        return self.reply(prompt, text=0, **fields)

    def fails(self, error: str, **fields: Any) -> Story:
        return self.say("model.failed", request=self.ask(), error=error, **fields)

    def compacts(
        self,
        before: int | None,
        after: int | None,
        *,
        attempt: str | None = None,
        trigger: str = "proactive",
        scope: str = "prompt",
        reported: str = "ok",
        **fields: Any,
    ) -> Story:
        name = attempt or f"a{self.seq}"
        self.say("compaction.started", attempt=name, trigger=trigger, scope=scope, before=before)
        return self.say(
            "compaction.finished",
            attempt=name,
            reported=reported,
            scope=scope,
            before=before,
            after=after,
            **fields,
        )

    # what is seen

    @property
    def row(self) -> ChatSummary:
        return summary(self.state, self.rules)

    @property
    def page(self) -> ChatDetail:
        return detail(self.state, self.rules, None)

    @property
    def is_(self) -> str:
        return self.state.state

    def codes(self) -> set[str]:
        return set(self.state.findings)

    def severity(self, code: str) -> str | None:
        found = self.state.findings.get(code)
        return found.severity if found else None

    def finding(self, code: str) -> FindingView:
        return next(view for view in self.page.findings if view.code == code)
