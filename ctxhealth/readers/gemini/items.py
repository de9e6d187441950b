"""Messages -> ``message.added`` events with sizes in characters and an excerpt."""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.sizes import dumped, sized
from ctxhealth.readers.values import Row, dict_at, list_at, text_at, word_at

_MOST_CALLS = 500
_FAILED = frozenset({"error", "cancelled"})


def words_of(message: Row) -> str:
    """The text of a message, which is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = [part for part in list_at(message, "content") if isinstance(part, dict)]
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def reply_items(message: Row, id: str) -> list[Event]:
    """Thoughts, text and calls of a reply; without ``ts`` and ``chat``."""
    found: list[Event] = []
    thoughts = [part for part in list_at(message, "thoughts") if isinstance(part, dict)]
    if thoughts:
        text = "\n".join(_thought(thought) for thought in thoughts)
        found.append(sized("assistant", "reasoning", text, excerpt=False))
    words = words_of(message)
    if words:
        found.append(sized("assistant", "text", words))
    found += [_call(call) for call in calls_of(message)]
    return _numbered(found, id)


def result_items(calls: list[Row], id: str) -> list[Event]:
    """The results that stand within the calls."""
    return _numbered([_result(call) for call in calls if call.get("result")], f"{id}.r")


def responses_in(message: Row) -> list[Row]:
    """The results that a message of the user's side carries, as calls that hold them."""
    parts = [part for part in list_at(message, "content") if isinstance(part, dict)]
    found = [part for part in parts if isinstance(part.get("functionResponse"), dict)]
    return [{**part["functionResponse"], "result": [part]} for part in found[:_MOST_CALLS]]


def calls_of(message: Row) -> list[Row]:
    calls = [call for call in list_at(message, "toolCalls") if isinstance(call, dict)]
    return calls[:_MOST_CALLS]


def content_of(items: list[Event]) -> dict[str, Any]:
    """What a reply held, in the wire's words; empty where it held nothing."""
    found = {"text_chars": 0, "tool_calls": 0, "thinking_chars": 0}
    for item in items:
        if item["kind"] == "text":
            # Only non-blank text is shown to anybody.
            found["text_chars"] += item["chars"] if item.get("excerpt", "").strip() else 0
        elif item["kind"] == "tool_call":
            found["tool_calls"] += 1
        elif item["kind"] == "reasoning":
            found["thinking_chars"] += max(item["chars"], 1)
    return {key: value for key, value in found.items() if value}


def _numbered(items: list[Event], id: str) -> list[Event]:
    return [
        {"type": "message.added", "id": f"{id}.{index}" if index else id, **item}
        for index, item in enumerate(items)
    ]


def _thought(thought: Row) -> str:
    return "\n".join(text_at(thought, key) or "" for key in ("subject", "description"))


def _call(call: Row) -> Event:
    item = sized("assistant", "tool_call", dumped(call.get("args")), name=text_at(call, "name"))
    id = word_at(call, "id")
    if id:
        item["calls"] = [id]
    return item


def _result(call: Row) -> Event:
    text = "\n".join(_answer(part) for part in list_at(call, "result") if isinstance(part, dict))
    item = sized("tool", "tool_result", text, name=text_at(call, "name"))
    id = word_at(call, "id")
    if id:
        item["answers"] = [id]
    if text_at(call, "status") in _FAILED:
        item["is_error"] = True
    return item


def _answer(part: Row) -> str:
    response = dict_at(dict_at(part, "functionResponse"), "response")
    return text_at(response, "output") or text_at(part, "text") or dumped(response or part)
