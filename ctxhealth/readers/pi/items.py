"""Messages -> ``message.added`` events with sizes in characters and an excerpt."""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.sizes import dumped, sized
from ctxhealth.readers.values import Row, dict_at, list_at, text_at

_MOST_BLOCKS = 500


def items_of(message: Row, id: str) -> list[Event]:
    """The events of one message, without ``ts`` and ``chat``; none for what is not sent on."""
    role = text_at(message, "role") or ""
    if role == "system":
        found = [sized("system", "text", _system_text(message))]
    elif role == "toolResult":
        found = _result(message)
    elif role == "bashExecution":
        found = _bash(message)
    elif role in ("user", "assistant"):
        found = [_block(block, role) for block in blocks_of(message)[:_MOST_BLOCKS]]
    else:
        found = [sized("user", _kind(role), words_of(message), name=role or None)]
    return [
        {"type": "message.added", "id": f"{id}.{index}" if index else id, **item}
        for index, item in enumerate(found)
    ]


def blocks_of(message: Row) -> list[Row]:
    """The content as blocks; plain text is one text block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in list_at(message, "content") if isinstance(block, dict)]


def words_of(message: Row) -> str:
    """All the text of a message, or of a row that stands for one."""
    parts = [block["text"] for block in blocks_of(message) if isinstance(block.get("text"), str)]
    return "\n".join(parts) or text_at(message, "summary") or ""


def _kind(role: str) -> str:
    return "summary" if role in ("branchSummary", "compactionSummary") else "data"


def _system_text(message: Row) -> str:
    """The prompt's sections and the schemas of the tools that it announces."""
    sections = [part for part in dict_at(message, "sections").values() if isinstance(part, str)]
    tools = list_at(message, "toolsAdded")
    return "\n".join([words_of(message), *sections, dumped(tools) if tools else ""]).strip()


def _block(block: Row, role: str) -> Event:
    kind = block.get("type")
    if kind == "text":
        return sized(role, "text", text_at(block, "text") or "")
    if kind == "thinking":
        return sized(role, "reasoning", text_at(block, "thinking") or "", excerpt=False)
    if kind == "toolCall":
        return _call(block)
    if kind == "image":
        return {"role": role, "kind": "image", "excerpt": "[image]"}
    return sized(role, "data", dumped(block), name=str(kind)[:200])


def _call(block: Row) -> Event:
    text = dumped(block.get("arguments"))
    item = sized("assistant", "tool_call", text, name=text_at(block, "name"))
    if text_at(block, "id"):
        item["calls"] = [block["id"][:200]]
    return item


def _result(message: Row) -> list[Event]:
    name = text_at(message, "toolName")
    item = sized("tool", "tool_result", words_of(message), name=name)
    if text_at(message, "toolCallId"):
        item["answers"] = [message["toolCallId"][:200]]
    if message.get("isError") is True:
        item["is_error"] = True
    images: list[Event] = [
        {"role": "tool", "kind": "image", "excerpt": "[image]"}
        for block in blocks_of(message)
        if block.get("type") == "image"
    ]
    return [item, *images]


def _bash(message: Row) -> list[Event]:
    """A command that the user ran by hand; its output may be kept from the model."""
    if message.get("excludeFromContext") is True:
        return []
    text = "\n".join(text_at(message, key) or "" for key in ("command", "output"))
    return [sized("user", "data", text, name="bash")]


def content_of(items: list[Event]) -> dict[str, Any]:
    """What a reply held, in the wire's words; empty where it held nothing."""
    found = {"text_chars": 0, "tool_calls": 0, "thinking_chars": 0, "data": 0}
    for item in items:
        if item["kind"] == "text":
            # Only non-blank text is shown to anybody.
            found["text_chars"] += item["chars"] if item.get("excerpt", "").strip() else 0
        elif item["kind"] == "tool_call":
            found["tool_calls"] += 1
        elif item["kind"] == "reasoning":
            found["thinking_chars"] += max(item["chars"], 1)
        else:
            found["data"] += 1
    return {key: value for key, value in found.items() if value}
