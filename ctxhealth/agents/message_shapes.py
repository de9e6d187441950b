"""Messages of an app as parts that the engine can shorten, and back: OpenAI, Anthropic, LangChain.

A part is a text, a call or a result. A message none of whose parts changed stays the very object
that the app had; a changed one is a copy with the new texts.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ctxhealth.agents.anthropic_messages import block_member
from ctxhealth.agents.following import read
from ctxhealth.agents.langchain_messages import role_of, text_of
from ctxhealth.agents.openai_messages import content_of, role_named


@dataclass(frozen=True)
class Part:
    """``text`` of a call are its arguments."""

    role: str
    kind: str
    text: str
    call: str | None = None
    answers: str | None = None
    name: str | None = None


class Shape(Protocol):
    def parts(self, message: Any) -> list[Part]: ...
    def with_texts(self, message: Any, texts: Sequence[str | None]) -> Any: ...
    def summary(self, text: str) -> Any: ...


class OpenAIShape:
    """chat.completions: dictionaries, or the library's own objects."""

    def parts(self, message: Any) -> list[Part]:
        role, (text, kind) = role_named(read(message, "role")), content_of(read(message, "content"))
        if role == "tool":
            return [Part(role, "tool_result", text or "", answers=_id(message, "tool_call_id"))]
        calls = [_call(call) for call in read(message, "tool_calls") or ()]
        return [Part(role, kind, text or ""), *calls] if text or not calls else calls

    def with_texts(self, message: Any, texts: Sequence[str | None]) -> Any:
        """``texts`` of its parts in order; None where a part is gone."""
        changed = _as_dict(message)
        calls = list(changed.get("tool_calls") or ())
        said = list(texts[: len(texts) - len(calls)])
        kept = [
            call for call, text in zip(calls, texts[len(said) :], strict=True) if text is not None
        ]
        changed["content"] = said[0] if said else changed.get("content")
        if calls:
            changed["tool_calls"] = kept
        if not changed.get("tool_calls"):
            changed.pop("tool_calls", None)
        return changed

    def summary(self, text: str) -> Any:
        return {"role": "user", "content": text}


class AnthropicShape:
    """messages: a part for each block."""

    def parts(self, message: Any) -> list[Part]:
        role, content = str(read(message, "role") or "user"), read(message, "content")
        if isinstance(content, str):
            return [Part(role, "text", content)]
        return [self._part(role, block) for block in content or ()]

    def with_texts(self, message: Any, texts: Sequence[str | None]) -> Any:
        changed = _as_dict(message)
        if isinstance(changed.get("content"), str):
            return {**changed, "content": texts[0] or ""}
        blocks = []
        for block, text in zip(changed["content"], texts, strict=True):
            if text is not None:
                part = self._part(str(changed.get("role")), block)
                blocks.append(block if part.text == text else _reworded(_as_dict(block), text))
        return {**changed, "content": blocks}

    def summary(self, text: str) -> Any:
        return {"role": "user", "content": [{"type": "text", "text": text}]}

    def _part(self, role: str, block: Any) -> Part:
        member = block_member(role, block)
        call, answers = next(iter(member.calls), None), next(iter(member.answers), None)
        return Part(member.role, member.kind, member.text or "", call, answers, member.name)


class LangChainShape:
    """Message objects of LangChain; ``human`` makes one, its class is not imported here."""

    def parts(self, message: Any) -> list[Part]:
        role, (text, kind) = role_of(message), text_of(message)
        if role == "tool":
            return [Part(role, "tool_result", text or "", answers=_id(message, "tool_call_id"))]
        calls = [
            Part(role, "tool_call", json.dumps(read(call, "args"), default=str),
                 _id(call, "id"), name=read(call, "name"))
            for call in read(message, "tool_calls") or ()
        ]  # fmt: skip
        return [Part(role, kind, text or ""), *calls] if text or not calls else calls

    def with_texts(self, message: Any, texts: Sequence[str | None]) -> Any:
        calls = list(read(message, "tool_calls") or ())
        said = list(texts[: len(texts) - len(calls)])
        kept = [
            call for call, text in zip(calls, texts[len(said) :], strict=True) if text is not None
        ]
        update: dict[str, Any] = {"tool_calls": kept} if calls else {}
        if said:
            update["content"] = said[0] or ""
        return message.model_copy(update=update)

    def summary(self, text: str) -> Any:
        # A message in OpenAI's form is a message to LangChain as well.
        return {"role": "user", "content": text}


SHAPES: dict[str, Shape] = {
    "openai": OpenAIShape(),
    "anthropic": AnthropicShape(),
    "langchain": LangChainShape(),
}


def _call(call: Any) -> Part:
    function = read(call, "function") or read(call, "custom")
    said = read(function, "arguments") or read(function, "input") or ""
    return Part("assistant", "tool_call", str(said), _id(call, "id"), name=read(function, "name"))


def _reworded(block: dict[str, Any], text: str) -> dict[str, Any]:
    """A block with another text; what was no text becomes one."""
    kind = str(block.get("type"))
    if kind.endswith("tool_result"):
        return {**block, "content": text}
    if kind in ("text", "image", "document"):
        return {"type": "text", "text": text}
    return block


def _as_dict(message: Any) -> dict[str, Any]:
    if isinstance(message, Mapping):
        return copy.copy(dict(message))
    found: dict[str, Any] = message.model_dump(exclude_none=True)
    return found


def _id(owner: Any, name: str) -> str | None:
    value = read(owner, name)
    return None if value is None else str(value)
