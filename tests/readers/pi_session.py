"""Builds small pi sessions, in the shape of newer and of older versions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.pi import PiReader
from tests.readers.session import check

SESSION = "01a22d43-0000-7000-8000-000000000002"
MODEL = "claude-opus-4-5"
START = datetime(2026, 10, 1, 10, 0, tzinfo=UTC)


class PiSession:
    """Rows in order; ``old`` rows carry no ids."""

    def __init__(self, *, old: bool = False) -> None:
        self.rows: list[dict[str, Any]] = []
        self.old = old
        self.clock = START
        self.last: str | None = None
        self.add("session", id=SESSION, cwd="/home/dev/garden", version=3)
        self.add("model_change", provider="anthropic", modelId=MODEL)

    def add(self, kind: str, **fields: Any) -> str:
        self.clock += timedelta(seconds=4)
        id = f"{len(self.rows):08x}"
        named = {"id": id, "parentId": self.last} if not self.old and kind != "session" else {}
        self.rows.append({"type": kind, "timestamp": _stamp(self.clock), **named, **fields})
        self.last = id
        return id

    def message(self, role: str, **fields: Any) -> str:
        return self.add("message", message={"role": role, **fields})

    def prompt(self, words: str = "What grows in bed 3?") -> str:
        return self.message("user", content=[{"type": "text", "text": words}])

    def reply(
        self, load: int, *blocks: dict[str, Any], stop: str = "stop", output: int = 40, **more: Any
    ) -> str:
        started = int(self.clock.timestamp() * 1000)
        return self.message(
            "assistant", content=list(blocks), provider="anthropic", model=MODEL,
            usage=usage_of(load, output), stopReason=stop, timestamp=started, **more,
        )  # fmt: skip

    def answer(self, load: int, words: str = "Carrots.", **more: Any) -> str:
        return self.reply(load, {"type": "text", "text": words}, **more)

    def call(self, load: int, id: str) -> str:
        block = {"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "notes.md"}}
        return self.reply(load, block, stop="toolUse")

    def result(self, id: str, words: str = "three rows of carrots") -> str:
        content = [{"type": "text", "text": words}]
        return self.message("toolResult", toolCallId=id, toolName="read", content=content)

    def failure(self, words: str, stop: str = "error") -> str:
        return self.reply(0, stop=stop, output=0, errorMessage=words)

    def turn(self, load: int) -> None:
        self.prompt(f"Question at {load}?")
        self.answer(load)

    def compaction(self, stated: int, kept: str, summary: str = "Beds 1 to 3.", **more: Any) -> str:
        return self.add(
            "compaction", summary=summary, tokensBefore=stated, firstKeptEntryId=kept, **more
        )

    def lines(self) -> list[bytes]:
        return [json.dumps(row, separators=(",", ":")).encode() for row in self.rows]


def usage_of(load: int, output: int) -> dict[str, Any]:
    cached = load // 2
    return {
        "input": load - cached, "output": output, "cacheRead": cached, "cacheWrite": 0,
        "totalTokens": load + output, "cost": {"total": 0.01},
    }  # fmt: skip


def read(session: PiSession, **options: Any) -> tuple[PiReader, list[Event]]:
    """All events of a whole file, each of them fit for the wire."""
    reader = PiReader("session", **options)
    events = [event for line in session.lines() for event in reader.feed(line)] + reader.finish()
    check(events)
    return reader, events


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
