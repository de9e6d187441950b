"""Builds small Codex rollouts, in the shape of newer and of older versions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.codex import CodexReader
from tests.readers.session import check

THREAD = "01a22d40-0000-7000-8000-000000000001"
MODEL = "gpt-5.3-codex"
WINDOW = 258_400
FRAME = (
    "Another language model started to solve this problem and left these words about it, use "
    "them:\n"
)


class Rollout:
    """Rows in order. ``old``: usage stands in ``token_count`` alone and every one comes twice."""

    def __init__(self, *, old: bool = False, **meta: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        self.old = old
        self.clock = datetime(2026, 10, 1, 10, 0, tzinfo=UTC)
        self.number = 0
        self.total = 0
        self.add("session_meta", id=THREAD, cwd="/home/dev/garden", model_provider="openai", **meta)

    def add(self, kind: str, **payload: Any) -> None:
        self.clock += timedelta(milliseconds=500)
        self.number += 1
        stamp = self.clock.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.rows.append({"timestamp": stamp, "type": kind, "payload": payload})

    def event(self, kind: str, **payload: Any) -> None:
        self.add("event_msg", type=kind, **payload)

    def item(self, kind: str, **payload: Any) -> None:
        named = {} if self.old else {"id": f"item_{self.number:012d}"}
        self.add("response_item", type=kind, **named, **payload)

    def task(self, *, context: bool = True) -> str:
        id = f"task-{self.number:04d}"
        self.event("task_started", turn_id=id, model_context_window=WINDOW)
        if context and not self.old:
            self.add("turn_context", turn_id=id, model=MODEL)
        return id

    def prompt(self, words: str = "What grows in bed 3?") -> None:
        self.item("message", role="user", content=[{"type": "input_text", "text": words}])
        if self.old:
            self.event("user_message", message=words)
            self.add("turn_context", model=MODEL)
        else:
            item = {"type": "UserMessage", "content": [{"type": "text", "text": words}]}
            self.event("item_completed", item=item)

    def begin(self, words: str = "What grows in bed 3?", *, context: bool = True) -> None:
        self.task(context=context)
        self.prompt(words)

    def say(self, words: str, **more: Any) -> None:
        content = [{"type": "output_text", "text": words}]
        self.item("message", role="assistant", content=content, **more)

    def call(self, id: str, name: str = "exec_command") -> None:
        self.item("function_call", name=name, arguments='{"cmd":"cat notes.md"}', call_id=id)

    def result(self, id: str, words: str = "three rows of carrots") -> None:
        self.item("function_call_output", call_id=id, output=words)

    def used(self, load: int, output: int = 40, response: str | None = None) -> None:
        """The usage of the reply before it, as the version writes it."""
        usage = usage_of(load, output)
        self.total += load + output
        if not self.old:
            id = response or f"resp_{self.number:06d}"
            self.add("token_usage_record", usage=usage, response_id=id)
        self.count(usage)

    def count(self, last: dict[str, int], times: int | None = None) -> None:
        info = {
            "last_token_usage": last, "model_context_window": WINDOW,
            "total_token_usage": usage_of(self.total, 0),
        }  # fmt: skip
        for _ in range(times or (2 if self.old else 1)):
            self.event("token_count", info=info, rate_limits=None)

    def estimate(self, total: int) -> None:
        self.count({**usage_of(0, 0), "total_tokens": total})

    def end(self, words: str | None = "Carrots.", error: dict[str, Any] | None = None) -> None:
        more = {} if error is None else {"error": error}
        self.event("task_complete", last_agent_message=words, **more)

    def turn(self, load: int, words: str = "Carrots.", prompt: str = "What grows?") -> None:
        self.begin(prompt)
        self.say(words)
        self.used(load)
        self.end(words)

    def summarise(self, load: int, words: str = "Beds 1 to 3.", output: int = 300) -> None:
        """A summary that the client asked its own model for, and the row of the compaction."""
        id = f"resp_{self.number:06d}"
        if output:
            self.say(words)
        self.used(load, output, response=id)
        self.compacted(FRAME + words, compaction_response_id=id)

    def compacted(self, message: str, history: list[Any] | None = None, **more: Any) -> None:
        if history is None:
            content = [{"type": "input_text", "text": message}]
            history = [{"type": "message", "role": "user", "content": content}]
        self.add("compacted", message=message, replacement_history=history, **more)
        if self.old:
            self.event("context_compacted")

    def lines(self) -> list[bytes]:
        return [json.dumps(row, separators=(",", ":")).encode() for row in self.rows]


def usage_of(load: int, output: int) -> dict[str, int]:
    return {
        "input_tokens": load, "cached_input_tokens": load // 2, "output_tokens": output,
        "reasoning_output_tokens": 0, "total_tokens": load + output,
    }  # fmt: skip


def read(rollout: Rollout, **options: Any) -> tuple[CodexReader, list[Event]]:
    """All events of a whole file, each of them fit for the wire."""
    reader = CodexReader("session", **options)
    events = [event for line in rollout.lines() for event in reader.feed(line)] + reader.finish()
    check(events)
    return reader, events
