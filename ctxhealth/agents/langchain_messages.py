"""LangChain's messages, as members of a history and as replies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ctxhealth.agents.following import Member, read
from ctxhealth.agents.observed import Reply, text_chars, whole

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_THINKING = ("thinking", "reasoning", "redacted_thinking", "reasoning_content")


def parts(message: Any) -> Iterator[Member]:
    """The member that a message is, and one for the calls that it makes beside its text."""
    role, (text, kind) = role_of(message), text_of(message)
    calls = read(message, "tool_calls") or ()
    if role == "tool":
        call, name = str(read(message, "tool_call_id") or ""), read(message, "name")
        yield Member(role, "tool_result", text, answers=(call,) if call else (), name=name)
        return
    if text or not calls:
        yield Member(role, kind, text)
    if calls:
        yield _call_member(calls)


def role_of(message: Any) -> str:
    kind = str(read(message, "type") or read(message, "role") or "").removesuffix("MessageChunk")
    return _ROLES.get(kind.lower(), "user")


def text_of(message: Any) -> tuple[str | None, str]:
    """Text and kind of what a message holds."""
    content = read(message, "content")
    if content is None or isinstance(content, str):
        return content, "text"
    texts: list[str] = []
    kinds = set()
    for part in content if isinstance(content, (list, tuple)) else ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(text := read(part, "text"), str):
            texts.append(text)
        else:
            kinds.add("image" if "image" in str(read(part, "type") or "") else "data")
    if kinds and not texts:
        return None, "image" if "image" in kinds else "data"
    return "\n".join(texts), "text"


def reply_of(message: Any) -> Reply:
    """LangChain's own counts hold cached tokens inside the input, whatever the provider."""
    about = read(message, "response_metadata") or {}
    finish = about.get("finish_reason") or about.get("stop_reason") or about.get("status")
    model = about.get("model_name") or about.get("model")
    thinking = sum(_thinking(part) for part in _parts(message))
    extra = read(message, "additional_kwargs") or {}
    content = {
        "text_chars": text_chars(text_of(message)[0]),
        "tool_calls": len(read(message, "tool_calls") or ())
        + len(read(message, "invalid_tool_calls") or ()),
        "thinking_chars": thinking or text_chars(extra.get("reasoning_content")),
        "data": int(any(read(part, "type") in ("image", "audio") for part in _parts(message))),
    }
    return Reply(usage_of(read(message, "usage_metadata")), content, finish, model)


def usage_of(usage: Any) -> dict[str, Any] | None:
    """``usage_metadata``; all zeros is what some integrations write where they know nothing."""
    if usage is None or not whole(read(usage, "input_tokens")):
        return None
    into, out = read(usage, "input_token_details"), read(usage, "output_token_details")
    found = {
        "input": whole(read(usage, "input_tokens")),
        "output": whole(read(usage, "output_tokens")),
        "cache_read": whole(read(into, "cache_read")),
        "cache_write": whole(read(into, "cache_creation")),
        "reasoning": whole(read(out, "reasoning")),
        "total": whole(read(usage, "total_tokens")),
    }
    return {"dialect": "openai", **{key: n for key, n in found.items() if n is not None}}


def _call_member(calls: Any) -> Member:
    ids = tuple(str(read(call, "id") or "") for call in calls)
    names = ", ".join(str(read(call, "name") or "") for call in calls)
    said = "\n".join(_said(read(call, "args")) for call in calls)
    return Member("assistant", "tool_call", said, calls=tuple(filter(None, ids)), name=names)


def _parts(message: Any) -> list[Any]:
    content = read(message, "content")
    return list(content) if isinstance(content, (list, tuple)) else []


def _thinking(part: Any) -> int:
    kind = read(part, "type")
    return text_chars(read(part, str(kind))) or 0 if kind in _THINKING else 0


def _said(value: Any) -> str:
    try:
        return json.dumps(value, default=str)
    except (TypeError, ValueError):
        return str(value)
