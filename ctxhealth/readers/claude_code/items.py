"""Message blocks -> ``message.added`` events with sizes in characters and an excerpt.

Tokens are left out: the transcript does not know them, and an estimate is the server's to make
and to mark. Images carry neither, so that nobody prices base64 as text.
"""

from __future__ import annotations

from ctxhealth.readers.base import Event
from ctxhealth.readers.claude_code.rows import content_blocks
from ctxhealth.readers.sizes import dumped, sized
from ctxhealth.readers.values import Row, dict_at, list_at, short, text_at

_MOST_BLOCKS = 500


def items_of(row: Row, uuid: str, role: str) -> list[Event]:
    """One event per block of the message, without ``ts`` and ``chat``."""
    found = []
    for index, block in enumerate(content_blocks(row)[:_MOST_BLOCKS]):
        item = _item(block, role)
        if item is not None:
            suffix = f".{index}" if index else ""
            found.append({"type": "message.added", "id": short(uuid) + suffix, **item})
    return found


def attachment_item(row: Row, uuid: str) -> Event | None:
    """What Claude Code adds to the prompt by itself; only where the text it rendered is there."""
    texts = [
        entry["content"]
        for entry in list_at(row, "rendered")
        if isinstance(entry, dict) and isinstance(entry.get("content"), str)
    ]
    if not texts:
        return None
    name = (text_at(dict_at(row, "attachment"), "type") or "attachment")[:200]
    item = sized("user", "data", "\n".join(texts), name=name)
    return {"type": "message.added", "id": short(uuid), **item}


def result_ids(row: Row) -> list[str]:
    """The calls that a row's tool results answer."""
    return [
        block["tool_use_id"]
        for block in content_blocks(row)
        if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str)
    ]


def _item(block: Row, role: str) -> Event | None:
    kind = block.get("type")
    if kind == "text":
        text = text_at(block, "text")
        return None if text is None else sized(role, "text", text)
    if kind in ("thinking", "redacted_thinking"):
        return sized(role, "reasoning", text_at(block, "thinking") or "", excerpt=False)
    if kind in ("tool_use", "server_tool_use"):
        return _call(block, role)
    if isinstance(kind, str) and kind.endswith("tool_result"):
        return _result(block)
    if kind == "image":
        return {"role": role, "kind": "image", "excerpt": _about_image(block)}
    return sized(role, "data", dumped(block), name=str(kind)[:200])


def _call(block: Row, role: str) -> Event:
    item = sized(role, "tool_call", dumped(block.get("input")), name=text_at(block, "name"))
    if text_at(block, "id"):
        item["calls"] = [block["id"][:200]]
    return item


def _result(block: Row) -> Event:
    content = block.get("content")
    parts = [content] if isinstance(content, str) else []
    images = 0
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            parts.append(part["text"])
        elif isinstance(part, dict) and part.get("type") == "image":
            images += 1
    item = sized("tool", "tool_result", "\n".join(parts))
    if images:
        item["images"] = images
    if text_at(block, "tool_use_id"):
        item["answers"] = [block["tool_use_id"][:200]]
    if block.get("is_error") is True:
        item["is_error"] = True
    return item


def _about_image(block: Row) -> str:
    source = dict_at(block, "source")
    data = source.get("data")
    size = f", {len(data) * 3 // 4:,} bytes" if isinstance(data, str) else ""
    return f"[{text_at(source, 'media_type') or 'image'}{size}]"
