"""Response items -> ``message.added`` events with sizes in characters and an excerpt.

What is encrypted has a size that is not its text's: it carries none.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.sizes import dumped, sized
from ctxhealth.readers.values import Row, dict_at, list_at, text_at, word_at

_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}
# Kept in the file only, never sent to the model.
_NOT_SENT = frozenset({"ghost_snapshot", "other"})
_SUMMARIES = frozenset({"compaction", "compaction_summary", "context_compaction"})
_ID_CHARS = 16


def item_id(payload: Row) -> str | None:
    """The end of the item's own id, which is its random part; None where it has none."""
    id = text_at(payload, "id")
    return None if id is None else id[-_ID_CHARS:]


def mark_of(payload: Row) -> str:
    """Tells a message again that a compaction kept; empty for what is no message."""
    if payload.get("type") != "message":
        return ""
    return words_mark(f"{payload.get('role')}\n{message_text(payload)}")


def words_mark(words: str) -> str:
    """A few bytes that stand for a text of any length."""
    return blake2b(words.strip().encode("utf-8", "replace"), digest_size=6).hexdigest()


def is_output(payload: Row) -> bool:
    """Whether the model wrote it: the others are its input."""
    kind = text_at(payload, "type") or ""
    if kind == "message":
        return payload.get("role") == "assistant"
    return kind == "reasoning" or kind.endswith("_call")


def is_encrypted_summary(payload: Row) -> bool:
    return payload.get("type") in _SUMMARIES and bool(text_at(payload, "encrypted_content"))


def message_text(payload: Row) -> str:
    """All the text of a message."""
    parts = [part["text"] for part in _content(payload) if isinstance(part.get("text"), str)]
    return parts[0] if len(parts) == 1 else "\n".join(parts)


def items_of(payload: Row, id: str) -> list[Event]:
    """The events of one item, without ``ts`` and ``chat``."""
    kind = text_at(payload, "type") or ""
    if kind in _NOT_SENT:
        return []
    if kind == "message":
        found = _message(payload)
    elif kind == "reasoning":
        found = [_reasoning(payload)]
    elif kind.endswith("_output"):
        found = [_result(payload)]
    elif kind.endswith("_call"):
        found = [_call(payload, kind)]
    elif kind in _SUMMARIES:
        found = [{"role": "user", "kind": "summary", "name": "encrypted summary"}]
    else:
        found = [sized("user", "data", dumped(payload), name=kind)]
    return [
        {"type": "message.added", "id": f"{id}.{index}" if index else id, **item}
        for index, item in enumerate(found)
    ]


def _content(payload: Row) -> list[Row]:
    content = payload.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in list_at(payload, "content") if isinstance(part, dict)]


def _message(payload: Row) -> list[Event]:
    role = _ROLES.get(text_at(payload, "role") or "", "user")
    text = message_text(payload)
    images: list[Event] = [
        {"role": role, "kind": "image", "excerpt": "[image]"}
        for part in _content(payload)
        if part.get("type") in ("input_image", "output_image", "image")
    ]
    return [sized(role, "text", text)] * bool(text or not images) + images


def _reasoning(payload: Row) -> Event:
    texts = [*list_at(payload, "summary"), *list_at(payload, "content")]
    known = [part["text"] for part in texts if isinstance(part, dict) and _is_text(part)]
    item = sized("assistant", "reasoning", "\n".join(known), excerpt=False)
    if text_at(payload, "encrypted_content"):
        del item["chars"]
    return item


def _is_text(part: Row) -> bool:
    return isinstance(part.get("text"), str)


def _call(payload: Row, kind: str) -> Event:
    body = next(
        (payload[key] for key in ("arguments", "input", "action") if payload.get(key)), None
    )
    text = body if isinstance(body, str) else dumped(body)
    item = sized("assistant", "tool_call", text, name=text_at(payload, "name") or kind)
    # A search on the provider's side has no call id: no result of it will come.
    call = text_at(payload, "call_id")
    if call is not None:
        item["calls"] = [call[:200]]
    return item


def _result(payload: Row) -> Event:
    item = sized("tool", "tool_result", _output_text(payload.get("output")))
    call = text_at(payload, "call_id")
    if call is not None:
        item["answers"] = [call[:200]]
    return item


def _output_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    if isinstance(output, dict):
        return text_at(output, "content") or _output_text(output.get("content_items")) or ""
    if isinstance(output, list):
        return "\n".join(text_at(part, "text") or "" for part in output if isinstance(part, dict))
    return ""


def source_parent(meta: Row) -> str | None:
    """The thread that spawned this one, from the ``session_meta`` row's payload."""
    spawn = dict_at(dict_at(dict_at(meta, "source"), "subagent"), "thread_spawn")
    return word_at(spawn, "parent_thread_id") or word_at(meta, "parent_thread_id")
