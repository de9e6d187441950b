"""Streams folded as a server folds them, with the ticks it would have added."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, get_args

from ctxhealth.core.changes import Changes
from ctxhealth.core.deadlines import next_deadline
from ctxhealth.core.fold import Stamp, fold, new_state
from ctxhealth.core.model import ChatDetail
from ctxhealth.core.rules import Rules, default_rules
from ctxhealth.core.state import ChatState
from ctxhealth.core.view import detail
from ctxhealth.wire import Reject, decode_event
from ctxhealth.wire.decode import decode_stored
from ctxhealth.wire.events import Event, ServerConnected, ServerTick
from ctxhealth.wire.types import CommandKind

_TICKS = 100


@dataclass(slots=True)
class Folded:
    """One chat of the stream; ``refused`` are (type, reason) of events that are none."""

    state: ChatState
    changes: Changes = field(default_factory=Changes)
    refused: list[tuple[str, str]] = field(default_factory=list)
    seq: int = 0

    def page(self, rules: Rules, now: int | None = None) -> ChatDetail:
        return detail(self.state, rules, None, now)


class Replay:
    """Events in, chats out. Times are the stream's own; every chat begins connected."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or default_rules()
        self.chats: dict[str, Folded] = {}
        self.now = 0

    def take(self, line: dict[str, Any]) -> None:
        """Fold one line. What cannot be decoded is kept as refused, as a server would."""
        chat = line.get("chat")
        if not isinstance(chat, str):
            return
        at = int(line["ts"])
        self.now = max(self.now, at)
        kind = str(line["type"])
        folded = self.chats.get(chat) or self._open(chat, at, kind)
        self._tick(folded, at)
        try:
            self._put(folded, _decoded(line, kind), at)
        except Reject as problem:
            folded.refused.append((kind, f"{problem.path}: {problem.detail}"))

    def _open(self, chat: str, at: int, kind: str) -> Folded:
        folded = self.chats[chat] = Folded(new_state(chat, at))
        if kind != "server.connected":
            commands = list(get_args(CommandKind))
            self._put(folded, ServerConnected(seq=1, ts=at, conn_no=1, commands=commands), at)
        return folded

    def _tick(self, folded: Folded, at: int) -> None:
        """What the server would have looked at before ``at``."""
        for _ in range(_TICKS):
            due = next_deadline(folded.state, self.rules)
            if due is None or due >= at:
                return
            self._put(folded, ServerTick(seq=1, ts=due), due)

    def folded(self, chat: Folded, event: Event) -> None:
        """One event was folded; its items and readings are dropped when this returns."""

    def _put(self, folded: Folded, event: Event, at: int) -> None:
        folded.seq += 1
        fold(folded.state, event, Stamp(folded.seq, at), folded.changes, self.rules)
        self.folded(folded, event)
        # Of these a page tells nothing, and there are as many as events.
        folded.changes.items.clear()
        folded.changes.readings.clear()


def _decoded(line: dict[str, Any], kind: str) -> Event:
    if kind.startswith("server."):
        return decode_stored(json.dumps({"seq": 1, **line}))
    return decode_event(json.dumps({"seq": 1, **line}).encode()).event
