"""A chat with an incident, through the store's own door, for pages that show it."""

from __future__ import annotations

from typing import Any

from ctxhealth.store import queries
from tests.live.world import Agent, answered

UTILITY = {"model": "glm-flash", "provider": "zai", "window": 200_000}


def incident_of(robot: Agent, chat: str = "c1", *, closed: bool = False, **facts: Any) -> int:
    """The chat's incident: a summarizer that answers nothing, and an agent that stops."""
    robot.report(
        {"type": "chat.opened", "chat": chat, "title": f"Chat {chat}", "window": 200_000,
         "model": "model-x", "trigger": {"tokens": 140_000, "scope": "history"},
         "history_limit": 140_000, "utility": UTILITY, **facts},
        {"type": "history.snapshot", "chat": chat, "revision": "r0", "history": 140_161,
         "topics": [{"id": "past", "tokens": 113_004}, {"id": "more", "tokens": 2_000}],
         "current": {"tokens": 27_157}},
        {"type": "turn.started", "chat": chat, "turn": "t1", "kind": "user"},
        *(_failed(chat, number) for number in range(3)),
        {"type": "agent.stopped", "chat": chat, "reason": "unusable replies", "count": 5,
         "limit": 5},
        {"type": "turn.ended", "chat": chat, "turn": "t1", "outcome": "stopped"},
    )  # fmt: skip
    if closed:
        recovers(robot, chat)
    found = queries.chat_find(robot.connected.stream.agent_name, chat)
    assert found is not None
    return next(row.id for row in queries.chat_incidents(found.id) if row.kind == "automatic")


def recovers(robot: Agent, chat: str = "c1") -> None:
    """A fallback that helps, and three calm answers."""
    robot.report(
        {"type": "compaction.finished", "chat": chat, "attempt": "f1", "trigger": "forced",
         "scope": "history", "reported": "fell_back", "before": 140_261, "after": 60_000,
         "steps": [{"step": "evict", "before": 140_261, "after": 60_000, "calls": 0}],
         "lossy": True},
        *(body for number in range(4) for body in answered(chat, f"calm{number}", 70_000)),
    )  # fmt: skip


def _failed(chat: str, number: int) -> dict[str, Any]:
    summarizer = {**UTILITY, "calls": 1, "input": 9_700, "error": "empty"}
    return {"type": "compaction.finished", "chat": chat, "attempt": f"a{number}",
            "trigger": "proactive", "scope": "history", "reported": "stalled",
            "before": 140_261, "after": 140_261, "summarizer": summarizer}  # fmt: skip
