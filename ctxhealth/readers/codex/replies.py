"""Replies: what the model wrote up to the usage row behind it is one reply, told once.

A reply whose usage is known is held for one more row: it may turn out to be the summary that a
compaction asked for, which is no load of the chat.
"""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.codex.context import Context
from ctxhealth.readers.codex.items import items_of, mark_of, message_text, words_mark
from ctxhealth.readers.codex.tasks import Tasks
from ctxhealth.readers.timeline import Part, Timeline
from ctxhealth.readers.values import Row

_MOST_ITEMS = 500
_AFTER_USAGE_MS = 2_000


class Replies(Part):
    """``group`` is the reply that is being read, ``said`` the last one's words (a hash)."""

    kept = ("group", "count", "model", "said")

    def __init__(self, line: Timeline, context: Context, tasks: Tasks) -> None:
        self._line, self._context, self._tasks = line, context, tasks
        self.group: dict[str, Any] | None = None
        self.count = 0
        self.model: str | None = None
        self.said = ""

    def item(self, payload: Row, id: str, ts: int, sent: int) -> None:
        """Something that the model wrote. ``sent``: when its request left, as no row says it."""
        if self.group is not None and (self.group["usage"] or self.group["input_came"]):
            self.close()
        group = self._open(ts, sent)
        group["ts"] = ts
        if payload.get("status") == "incomplete":
            group["finish"] = "incomplete"
        for item in items_of(payload, id):
            _count(group["content"], item)
            if len(group["items"]) < _MOST_ITEMS:
                event = self._line.make(item.pop("type"), ts, **item)
                group["items"].append([event, mark_of(payload)])
        if payload.get("type") == "message":
            group["said"] = words_mark(message_text(payload))

    def usage(self, usage: Row | None, response: str | None, ts: int, sent: int) -> None:
        """The usage row behind a reply; one without anything before it is an empty reply."""
        if usage is None:
            return
        if self.group is not None and self.group["usage"]:
            self.close()
        group = self._open(ts, sent)
        group["ts"], group["usage"], group["response"] = ts, usage, response

    def input(self) -> None:
        """A row that is no output of the model: a reply with usage is told now."""
        if self.group is None:
            return
        self.group["input_came"] = True
        if self.group["usage"]:
            self.close()

    def summary(self, response: str | None) -> dict[str, Any] | None:
        """The held reply if it is the one that a compaction asked for; others are told."""
        group = self.group
        if group is None:
            return None
        own = bool(group["usage"]) and not group["content"]["tool_calls"]
        if own and response in (None, group["response"]):
            return self.taken()
        self.close()
        return None

    def taken(self) -> dict[str, Any] | None:
        """The held reply, not told."""
        group, self.group = self.group, None
        self._line.fill_slot([])
        return group

    def close(self) -> None:
        """No more of this reply: tell it."""
        group, self.group = self.group, None
        if group is None:
            return
        self.count += 1
        request = group["response"] or f"r-{self.count}"
        events = self._tasks.ensure(group["sent"])
        events.append(self._line.make("request.sent", group["sent"], request=request))
        events.append(
            self._line.make(
                "model.replied", group["ts"], request=request, model=self.model,
                usage=group["usage"] or None, finish=group["finish"],
                content={key: value for key, value in group["content"].items() if value},
            )
        )  # fmt: skip
        for item, mark in group["items"]:
            self._context.added(item, mark)
            item["turn"] = item["topic"] = self._tasks.turn
            events.append(item)
        self._line.fill_slot(events)
        if group["usage"]:
            self._context.counted(group["usage"])
        self.said = group["said"] or self.said
        self._tasks.replied(_held(group["content"]))

    def settle(self, idle_ms: int, long_ms: int) -> None:
        group = self.group
        if group is not None and idle_ms >= (_AFTER_USAGE_MS if group["usage"] else long_ms):
            self.close()

    def _open(self, ts: int, sent: int) -> dict[str, Any]:
        if self.group is None:
            self._line.open_slot()
            self.group = {
                "ts": ts, "sent": min(sent or ts, ts), "usage": {}, "response": None,
                "finish": None, "items": [], "said": "", "input_came": False,
                "content": {"text_chars": 0, "tool_calls": 0, "thinking_chars": 0, "data": 0},
            }  # fmt: skip
        return self.group


def _count(content: dict[str, int], item: Event) -> None:
    if item["kind"] == "text":
        content["text_chars"] += item["chars"] if item.get("excerpt", "").strip() else 0
    elif item["kind"] == "tool_call":
        content["tool_calls"] += 1
    elif item["kind"] == "reasoning":
        content["thinking_chars"] += max(item.get("chars", 0), 1)
    else:
        content["data"] += 1


def _held(content: dict[str, int]) -> str:
    if content["tool_calls"]:
        return "tools"
    return "text" if content["text_chars"] or content["data"] else "nothing"
