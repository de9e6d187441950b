"""The model calls of one session: an attempt of the stream each, with its usage and content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Event = dict[str, Any]


class Calls:
    """``open`` is the call that runs, as kept over a restart; ``empty`` counts empties in a row."""

    def __init__(self, kept: Mapping[str, Any] | None = None, empty: int = 0) -> None:
        self.open: dict[str, Any] | None = dict(kept) if kept else None
        self.empty = empty

    def begin(self, attempt: Mapping[str, Any], now: int) -> list[Event]:
        self.open = {
            "request": str(attempt.get("id")), "number": attempt.get("attempt"), "at": now,
            "text": 0, "thinking": 0, "tools": [], "usage": None,
        }  # fmt: skip
        return [{"type": "request.sent", "request": self.open["request"]}]

    def wrote(self, text: str) -> None:
        """The reply's whole text."""
        if self.open is not None and text.strip():
            self.open["text"] = len(text)

    def thought(self, text: str) -> None:
        if self.open is not None:
            self.open["thinking"] += len(text)

    def called(self, tool: str) -> None:
        if self.open is not None and tool not in self.open["tools"]:
            self.open["tools"].append(tool)

    def billed(self, usage: Mapping[str, Any]) -> None:
        if self.open is not None:
            self.open["usage"] = _usage(usage, self.open["number"])
            self.open["billed"] = True

    def discard(self, reason: str, now: int) -> list[Event]:
        """The attempt is given up and another may follow."""
        if reason == "empty":
            return self._replied(now, None)
        return self.fail("other", f"given up by Reasonix: {reason or 'no reason given'}", now)

    def commit(self, reason: str, now: int) -> list[Event]:
        """The attempt ended; without usage or content the turn's end will say how."""
        if self.open is None:
            return []
        seen = self.open["text"] or self.open["tools"] or self.open["thinking"]
        if reason and not (self.open.get("billed") or seen):
            return []
        if reason and not self.open.get("billed"):
            # Broken off half-way: what it cost was never said.
            return self.fail("cancelled" if reason == "cancelled" else "other", reason, now)
        return self._replied(now, self.open["usage"])

    def fail(
        self, error: str, detail: str, now: int, *, status: int | None = None
    ) -> list[Event]:  # fmt: skip
        call, self.open = self.open, None
        if call is None:
            return []
        return [{
            "type": "model.failed", "request": call["request"], "error": error,
            "status": status, "detail": detail or None, "ms": now - call["at"],
        }]  # fmt: skip

    def unseen(self) -> list[Event]:
        """The call was answered where nobody looked: neither usage nor content is known."""
        call, self.open = self.open, None
        return [] if call is None else [{"type": "model.replied", "request": call["request"]}]

    def _replied(self, now: int, usage: Event | None) -> list[Event]:
        call, self.open = self.open, None
        if call is None:
            return []
        content = {
            "text_chars": call["text"], "tool_calls": len(call["tools"]),
            "thinking_chars": call["thinking"],
        }  # fmt: skip
        events: list[Event] = [{
            "type": "model.replied", "request": call["request"], "usage": usage,
            "content": content, "ms": now - call["at"],
        }]  # fmt: skip
        self.empty = 0 if any(content.values()) else self.empty + 1
        if self.empty:
            sizes = usage or {}
            events.append({
                "type": "reply.empty", "n": self.empty, "request": call["request"],
                "prompt": sizes.get("input"), "completion": sizes.get("output"),
            })  # fmt: skip
        return events


def _usage(usage: Mapping[str, Any], number: Any) -> Event | None:
    """One call's own numbers: the plain ones are summed over replays of the same request."""
    if usage.get("contextPromptTokens") is not None:
        names = ("contextPromptTokens", "contextCompletionTokens", "contextCacheHitTokens")
    elif number in (None, 1):
        names = ("promptTokens", "completionTokens", "cacheHitTokens")
    else:
        return None
    prompt, output, cached = (usage.get(name) for name in names)
    return {"dialect": "openai", "input": prompt, "output": output, "cache_read": cached}
