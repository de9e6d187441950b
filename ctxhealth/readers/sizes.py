"""An item's size in characters and its excerpt; its tokens are the server's to estimate."""

from __future__ import annotations

import json
from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.values import EXCERPT_CHARS


def sized(
    role: str, kind: str, text: str, *, name: str | None = None, excerpt: bool = True
) -> Event:
    item: Event = {"role": role, "kind": kind, "chars": len(text)}
    if name:
        item["name"] = name[:200]
    if excerpt and text:
        item["excerpt"] = text[:EXCERPT_CHARS]
    return item


def no_result(call: str) -> Event:
    """Stands for what a program puts in the place of a result that never came."""
    return {
        "type": "message.added", "id": f"none-{call}"[:200], "role": "tool",
        "kind": "tool_result", "chars": 0, "answers": [call], "name": "no result",
    }  # fmt: skip


def dumped(value: Any) -> str:
    if value is None:
        return ""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return ""
