"""Messages in OpenAI's two shapes, as members of a history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ctxhealth.agents.following import Member, read

_ROLES = {"developer": "system", "function": "tool"}
_KNOWN = ("system", "user", "assistant", "tool")


def chat_parts(message: Any) -> Iterator[Member]:
    """The members that one message of a list for chat.completions is."""
    role = role_named(read(message, "role"))
    text, kind = content_of(read(message, "content"))
    answers = read(message, "tool_call_id")
    if role == "tool":
        yield Member(role, "tool_result", text, answers=(str(answers),) if answers else ())
        return
    calls = _calls(message)
    if text or not calls:
        yield Member(role, kind, text)
    if calls:
        yield Member(role, "tool_call", calls[1], calls=calls[0], name=calls[2])


def response_parts(item: Any) -> Iterator[Member]:
    """The members that one item of a list for responses is: messages, calls, their outputs."""
    kind = str(read(item, "type") or "message")
    call = str(read(item, "call_id") or "")
    ids = (call,) if call else ()
    if isinstance(item, str):
        yield Member("user", "text", item)
    elif kind == "message":
        text, found = content_of(read(item, "content"))
        yield Member(role_named(read(item, "role")), found, text)
    elif kind.endswith("_call_output"):
        yield Member("tool", "tool_result", _said(read(item, "output")), answers=ids)
    elif kind.endswith("_call"):
        name, said = str(read(item, "name") or kind), _said(read(item, "arguments"))
        yield Member("assistant", "tool_call", said, calls=ids, name=name)
    elif kind == "reasoning":
        yield Member("assistant", "reasoning", _said(read(item, "summary")))
    else:
        yield Member("system", "data", kind)


def role_named(role: Any) -> str:
    name = _ROLES.get(str(role), str(role))
    return name if name in _KNOWN else "user"


def _calls(message: Any) -> tuple[tuple[str, ...], str, str | None] | None:
    """Ids, arguments and names of the calls that a message makes."""
    made = read(message, "tool_calls") or ()
    if not made:
        return None
    ids = tuple(str(read(call, "id")) for call in made)
    functions = [read(call, "function") or read(call, "custom") for call in made]
    names = [str(read(function, "name") or "") for function in functions]
    said = [
        str(read(function, "arguments") or read(function, "input") or "") for function in functions
    ]
    return ids, "\n".join(said), ", ".join(names) or None


def content_of(content: Any) -> tuple[str | None, str]:
    """Text and kind of a message's content: a text, or parts of several kinds."""
    if content is None or isinstance(content, str):
        return content, "text"
    texts, kinds = [], set()
    for part in content if isinstance(content, (list, tuple)) else ():
        kind = str(read(part, "type") or "")
        text = read(part, "text") or read(part, "refusal")
        if isinstance(text, str):
            texts.append(text)
        else:
            kinds.add("image" if "image" in kind else "data")
    joined = "\n".join(texts)
    if kinds and not joined:
        return None, "image" if "image" in kinds else "data"
    return joined, "text"


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, default=str)
    except (TypeError, ValueError):
        return str(value)
