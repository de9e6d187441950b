"""Builds small Claude Code sessions of the shapes that the real ones have."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.claude_code import ClaudeCodeReader
from ctxhealth.wire.decode import Decoded, decode_event

SESSION = "5e551011-0000-4000-8000-000000000000"
MODEL = "claude-sonnet-4-5-20250929"
START = datetime(2026, 10, 1, 10, 0, tzinfo=UTC)


class Session:
    """Rows in order; every method adds one and returns its uuid."""

    def __init__(self, id: str = SESSION) -> None:
        self.id = id
        self.rows: list[dict[str, Any]] = []
        self.clock = START
        self.number = 0

    def row(self, kind: str, **fields: Any) -> str:
        self.clock += timedelta(seconds=2)
        self.number += 1
        uuid = f"{self.number:08d}-{self.id[:4]}-4000-8000-000000000000"
        stamp = self.clock.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.rows.append(
            {
                "type": kind, "uuid": uuid, "sessionId": self.id, "timestamp": stamp,
                "cwd": "/home/dev/garden", "version": "2.1.300", "isSidechain": False, **fields,
            }
        )  # fmt: skip
        return str(self.rows[-1]["uuid"])

    def bare(self, kind: str, **fields: Any) -> None:
        """A row without a uuid of its own."""
        self.rows.append({"type": kind, "sessionId": self.id, **fields})

    def prompt(self, text: str = "What grows in bed 3?", **fields: Any) -> str:
        return self.row("user", message={"role": "user", "content": text}, **fields)

    def result(self, call: str, text: str = "three rows of carrots", **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self.row("user", message={"role": "user", "content": [block]}, **fields)

    def reply(
        self,
        id: str,
        load: int,
        *blocks: dict[str, Any],
        stop: str | None = None,
        model: str = MODEL,
        output: int = 40,
        **fields: Any,
    ) -> str:
        """One row of the reply ``id`` whose prompt was ``load`` tokens."""
        usage = {
            "input_tokens": 4, "cache_creation_input_tokens": 600,
            "cache_read_input_tokens": load - 604, "output_tokens": output,
        }  # fmt: skip
        message = {
            "id": id, "model": model, "role": "assistant", "content": list(blocks),
            "stop_reason": stop, "usage": usage,
        }  # fmt: skip
        return self.row("assistant", message=message, **fields)

    def answer(self, id: str, load: int, words: str = "Carrots.", **fields: Any) -> str:
        return self.reply(id, load, text(words), stop="end_turn", **fields)

    def turn(self, id: str, load: int) -> None:
        self.prompt(f"Question {id}?")
        self.answer(id, load)

    def synthetic(self, words: str, **fields: Any) -> str:
        usage = {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0}
        message = {
            "id": f"syn-{len(self.rows)}", "model": "<synthetic>", "role": "assistant",
            "content": [text(words)], "stop_reason": "stop_sequence", "usage": usage,
        }  # fmt: skip
        return self.row("assistant", message=message, **fields)

    def api_error(self, words: str, error: str, status: int | None = None) -> str:
        more = {} if status is None else {"apiErrorStatus": status}
        return self.synthetic(words, isApiErrorMessage=True, error=error, **more)

    def request(self, id: str) -> None:
        stamp = self.clock.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.bare("api-request", id=id, timestamp=stamp, querySource="sdk")

    def billed(self, total: int) -> None:
        usage = {"inputTokens": 0, "cacheReadInputTokens": total, "cacheCreationInputTokens": 0}
        self.bare("cost-state", modelUsage={MODEL: usage})

    def boundary(
        self, before: int, trigger: str = "auto", summary: str = "Beds 1 to 3.", **meta: Any
    ) -> str:
        uuid = self.row(
            "system", subtype="compact_boundary", parentUuid=None,
            compactMetadata={"trigger": trigger, "preTokens": before, "durationMs": 900, **meta},
        )  # fmt: skip
        frame = "This session is being continued from a previous conversation that ran out.\n"
        self.prompt(frame + summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)
        return uuid

    def lines(self) -> list[bytes]:
        return [json.dumps(row, separators=(",", ":")).encode() for row in self.rows]

    def bytes(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines())

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.bytes())
        return path


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def thinking(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": "x"}


def call(id: str, name: str = "Read") -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {"path": "notes.md"}}


def window_of(model: str) -> int | None:
    return 200_000 if "4-5" in model else None


def read(lines: list[bytes], **options: Any) -> tuple[ClaudeCodeReader, list[Event]]:
    """All events of a whole file, each of them fit for the wire."""
    options.setdefault("window_of", window_of)
    reader = ClaudeCodeReader("session", **options)
    events = [event for line in lines for event in reader.feed(line)] + reader.finish()
    check(events)
    return reader, events


def check(events: list[Event]) -> None:
    """Every event decodes as an agent's, and time never steps back within a chat."""
    latest: dict[str, int] = {}
    fit(events)
    for event in events:
        assert event["ts"] >= latest.get(event["chat"], 0)
        latest[event["chat"]] = event["ts"]


def fit(events: list[Event]) -> None:
    """Every event decodes as an agent's."""
    for seq, event in enumerate(events, 1):
        sent = {"seq": seq, **event}
        if "excerpt" in sent:
            sent["excerpt"] = sent["excerpt"][:400]
        decoded = decode_event(json.dumps(sent).encode())
        assert isinstance(decoded, Decoded), (decoded, event)


def of(events: list[Event], kind: str, chat: str | None = None) -> list[Event]:
    return [e for e in events if e["type"] == kind and (chat is None or e["chat"] == chat)]


def loads(events: list[Event], chat: str | None = None) -> list[int]:
    """The prompt of every reply that reported one, in order."""
    return [
        load_of(event["usage"]) for event in of(events, "model.replied", chat) if "usage" in event
    ]


def load_of(usage: dict[str, Any]) -> int:
    """Only Anthropic's dialect counts cached tokens beside the input."""
    beside = ("cache_read", "cache_write") if usage["dialect"] == "anthropic" else ()
    return int(sum(usage.get(key, 0) for key in ("input", *beside)))
