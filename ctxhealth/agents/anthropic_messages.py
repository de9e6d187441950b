"""Messages in Anthropic's shape, as members of a history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ctxhealth.agents.following import Member, read


def message_parts(message: Any) -> Iterator[Member]:
    """A member for each block: results stand in messages of the user, calls beside text."""
    role, content = str(read(message, "role") or "user"), read(message, "content")
    if role not in ("user", "assistant", "system"):
        role = "user"
    if isinstance(content, str):
        yield Member(role, "text", content)
        return
    for block in content if isinstance(content, (list, tuple)) else ():
        yield block_member(role, block)


def block_member(role: str, block: Any) -> Member:
    """One content block."""
    kind = str(read(block, "type") or "text")
    if kind.endswith("tool_result") and read(block, "tool_use_id"):
        answers = (str(read(block, "tool_use_id")),)
        return Member("tool", "tool_result", block_text(block), answers=answers)
    if kind.endswith("tool_use"):
        name, calls = str(read(block, "name") or ""), (str(read(block, "id")),)
        return Member(role, "tool_call", _said(read(block, "input")), calls=calls, name=name)
    if kind == "text":
        return Member(role, "text", str(read(block, "text") or ""))
    if kind in ("thinking", "redacted_thinking"):
        return Member(role, "reasoning", read(block, "thinking"))
    return Member(role, "image" if kind == "image" else "data", block_text(block) or None)


def block_text(block: Any) -> str:
    """The texts of a block's content."""
    content = read(block, "content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else ()
    return "\n".join(text for part in parts if isinstance(text := read(part, "text"), str))


def _said(value: Any) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(value, default=str)
    except (TypeError, ValueError):
        return str(value)
