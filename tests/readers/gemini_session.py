"""Builds small Gemini CLI sessions of the shapes that the real ones have."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.gemini import GeminiReader

SESSION = "6e313131-0000-4000-8000-000000000000"
MODEL = "gemini-2.5-pro"
START = datetime(2026, 10, 1, 10, 0, tzinfo=UTC)


class GeminiSession:
    """Messages in order; ``document`` and ``rows`` give both forms of the file."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.clock = START

    def add(self, type: str, content: str, **fields: Any) -> dict[str, Any]:
        self.clock += timedelta(seconds=2)
        number = len(self.messages) + 1
        id = f"{number:08d}-aaaa-4000-8000-000000000000"
        message = {
            "id": id, "timestamp": _stamp(self.clock), "type": type, "content": content, **fields,
        }  # fmt: skip
        self.messages.append(message)
        return message

    def reply(
        self, load: int, words: str = "Carrots.", *calls: dict[str, Any], **more: Any
    ) -> None:
        tokens = {"input": load, "output": 40, "cached": load // 2, "thoughts": 9, "tool": 0,
                  "total": load + 49}  # fmt: skip
        thoughts = [{"subject": "Beds", "description": "Which of them?"}]
        self.add("gemini", words, model=MODEL, tokens=tokens, thoughts=thoughts,
                 toolCalls=list(calls))  # fmt: skip

    def turn(self, load: int, prompt: str = "What grows?") -> None:
        self.add("user", prompt)
        self.reply(load)

    def call(self, id: str, output: str | None = "three rows", status: str = "success") -> Any:
        response = {"id": id, "name": "read_file", "response": {"output": output}}
        result = [{"functionResponse": response}] if output is not None else []
        at = _stamp(self.clock + timedelta(seconds=3))
        return {"id": id, "name": "read_file", "args": {"path": "bed-3"}, "result": result,
                "status": status, "timestamp": at}  # fmt: skip

    @property
    def facts(self) -> dict[str, Any]:
        return {"sessionId": SESSION, "projectHash": "7e89", "startTime": _stamp(START),
                "lastUpdated": _stamp(self.clock)}  # fmt: skip

    def document(self, indent: int | None = 2) -> bytes:
        return json.dumps({**self.facts, "messages": self.messages}, indent=indent).encode()

    def responded(self, id: str, output: str = "three rows") -> None:
        """The results of a call once more, as newer versions send them to the model."""
        message = self.add("user", "")
        part = {"id": id, "name": "read_file", "response": {"output": output}}
        message["content"] = [{"functionResponse": part}]

    def patch(self, *texts: str, id: str = "snap0001-aaaa") -> None:
        """The history is written as a whole, as these texts; the second is its ``id``."""
        kept = [{"id": "pre", "type": "user", "content": [{"text": "<session_context>"}]}]
        for number, text in enumerate(texts):
            name = f"{id}{number or ''}"
            kept.append({"id": name, "type": "user", "content": [{"text": text}]})
        self.messages.append({"$set": {"messages": kept, "lastUpdated": _stamp(self.clock)}})

    def rows(self) -> bytes:
        rows = [{**self.facts, "kind": "main"}, *self.messages]
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def read(data: bytes) -> tuple[GeminiReader, list[Event]]:
    """The whole file, line by line."""
    reader, events = GeminiReader(), []
    for line in data.split(b"\n"):
        events += reader.feed(line)
    return reader, events + reader.finish()


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
