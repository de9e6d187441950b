"""Chats in trouble, as their agents would tell it."""

from __future__ import annotations

from typing import Any

from tests.store.streams import event, exchange, message, opened

UTILITY = {"model": "glm-flash", "provider": "zai", "window": 200_000}


class Told:
    """Events of one stream, numbered as they are told."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def take(self) -> list[dict[str, Any]]:
        """What was told since the last time."""
        taken, self._from = self.events[self._from :], len(self.events)
        return taken

    _from = 0

    @property
    def next(self) -> int:
        return len(self.events) + 1

    def say(self, type_: str, chat: str, **fields: Any) -> Told:
        self.events.append(event(self.next, type_, chat, **fields))
        return self

    def opens(self, chat: str, **facts: Any) -> Told:
        self.events.append(
            opened(
                self.next,
                chat,
                trigger={"tokens": 140_000, "scope": "history"},
                history_limit=140_000,
                utility=UTILITY,
                **facts,
            )
        )
        parts = {"topics": [{"id": "past", "tokens": 113_004}], "current": {"tokens": 27_157}}
        return self.say("history.snapshot", chat, revision="r0", history=140_161, **parts)

    def asks(self, chat: str, turn: str = "t1") -> Told:
        self.say("turn.started", chat, turn=turn, kind="user")
        self.events.append(message(self.next, chat))
        return self

    def dead_summarizer(self, chat: str, times: int = 2, error: str = "empty") -> Told:
        """Compactions whose summarizer gives nothing; from the second on it is critical."""
        for _ in range(times):
            attempt = f"a{self.next}"
            self.say(
                "compaction.finished",
                chat,
                attempt=attempt,
                trigger="proactive",
                scope="history",
                reported="stalled",
                before=140_261,
                after=140_261,
                summarizer={**UTILITY, "calls": 1, "input": 9_700, "error": error},
            )
        return self

    def stops(self, chat: str, turn: str = "t1") -> Told:
        self.say("agent.stopped", chat, reason="unusable replies", count=5, limit=5)
        return self.say("turn.ended", chat, turn=turn, outcome="stopped")

    def folds(self, chat: str, turn: str = "t2") -> Told:
        """A fallback that helps, and the answer for the user."""
        self.say(
            "compaction.finished",
            chat,
            attempt=f"f{self.next}",
            trigger="forced",
            scope="history",
            reported="fell_back",
            before=140_261,
            after=60_000,
            steps=[{"step": "evict", "before": 140_261, "after": 60_000, "calls": 0}],
            lossy=True,
        )
        self.say("turn.started", chat, turn=turn, kind="continuation")
        self.events.extend(exchange(self.next, 70_000, chat))
        return self.say("turn.ended", chat, turn=turn, outcome="answered")

    def works(self, chat: str, requests: int = 3, turn: str = "t3") -> Told:
        self.say("turn.started", chat, turn=turn, kind="user")
        for step in range(requests):
            self.events.extend(exchange(self.next, 71_000 + step * 500, chat))
        return self.say("turn.ended", chat, turn=turn, outcome="answered")
