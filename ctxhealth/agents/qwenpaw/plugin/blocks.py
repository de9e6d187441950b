"""QwenPaw's messages as items: one item per block, sized as QwenPaw's models count.

A message is an object, or a dictionary where it comes from a saved session. One assistant
message holds all steps of a reply: texts, calls and results, growing in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Tokens that QwenPaw counts for one picture, recording or file, whatever its size.
MEDIA_TOKENS = 2_000
TAG = "qwenpaw_tag"
MEMORY = "scroll_memory"
#: Messages in the user's role that the runtime writes to keep a turn going.
NOTICES = frozenset({"auto_continue", "loop_continuation", "rubric_evaluation"})
_FOLDED = ("[scroll folded]", "[scroll recall folded]")


@dataclass(frozen=True)
class Part:
    """One block. ``tokens`` by bytes / 4; ``folded``: only a pointer is left of a result."""

    id: str
    role: str
    kind: str
    tokens: int
    text: str | None = None
    name: str | None = None
    call: str | None = None
    answer: str | None = None
    folded: bool = False

    @property
    def calls(self) -> list[str] | None:
        return [self.call] if self.call else None

    @property
    def answers(self) -> list[str] | None:
        return [self.answer] if self.answer else None


def field(thing: Any, name: str, default: Any = None) -> Any:
    if isinstance(thing, dict):
        return thing.get(name, default)
    return getattr(thing, name, default)


def count(text: str) -> int:
    """Tokens of ``text`` as QwenPaw's models count: UTF-8 bytes / 4, rounded."""
    return int(len(text.encode("utf-8", "replace")) / 4 + 0.5)


def tag_of(message: Any) -> str | None:
    metadata = field(message, "metadata")
    tag = metadata.get(TAG) if isinstance(metadata, dict) else None
    return tag if isinstance(tag, str) else None


def is_memory(message: Any) -> bool:
    """The message that scroll puts in place of evicted turns."""
    return tag_of(message) == MEMORY


def is_request(message: Any) -> bool:
    """Whether a person (or task) wrote it: a turn begins with it."""
    tag = tag_of(message)
    return field(message, "role") == "user" and tag != MEMORY and tag not in NOTICES


def message_id(message: Any) -> str:
    return str(field(message, "id") or id(message))


def blocks_of(message: Any) -> list[Any]:
    content = field(message, "content")
    if isinstance(content, str):
        return [{"type": "text", "text": content, "id": message_id(message)}] if content else []
    return list(content or ())


def parts_of(message: Any, start: int = 0) -> Iterator[Part]:
    """The items of a message, from its block number ``start`` on."""
    role, base = _role(message), message_id(message)
    for number, block in enumerate(blocks_of(message)[start:], start):
        part = _part(block, base, number, role)
        if part is not None:
            yield part


def _role(message: Any) -> str:
    role = str(field(message, "role") or "user")
    if role == "user" and tag_of(message) in NOTICES:
        return "system"
    return role if role in ("system", "user", "assistant", "tool") else "user"


def _part(block: Any, base: str, number: int, role: str) -> Part | None:
    kind = str(field(block, "type") or "")
    own = str(field(block, "id") or f"{base}.{number}")
    name = field(block, "name")
    if kind == "text":
        text = str(field(block, "text") or "")
        return Part(own, role, "text", count(text), text)
    if kind == "thinking":
        text = str(field(block, "thinking") or "")
        return Part(own, role, "reasoning", count(text), text)
    if kind in ("tool_call", "tool_use"):
        text = str(field(block, "input") or "")
        return Part(f"call:{own}", role, "tool_call", count(text), text, name, call=own)
    if kind == "tool_result":
        text, media = _output(field(block, "output"))
        size = count(text) + media * MEDIA_TOKENS
        folded = text.startswith(_FOLDED)
        return Part(
            f"result:{own}", "tool", "tool_result", size, text, name, answer=own, folded=folded
        )
    if kind == "hint":
        text, media = _output(field(block, "hint"))
        return Part(own, "system", "text", count(text) + media * MEDIA_TOKENS, text)
    if kind in ("data", "image", "audio", "video", "file"):
        return Part(own, role, "image" if kind == "image" else "data", MEDIA_TOKENS, name=name)
    return None


def _output(value: Any) -> tuple[str, int]:
    """Text and number of media of a result's output or a hint."""
    if isinstance(value, str):
        return value, 0
    texts, media = [], 0
    for block in value or ():
        if field(block, "type") == "text":
            texts.append(str(field(block, "text") or ""))
        else:
            media += 1
    return "".join(texts), media


def content_of(blocks: Any) -> dict[str, int]:
    """What a reply held, as the event ``model.replied`` says it; text counts where not blank."""
    said = {"text_chars": 0, "tool_calls": 0, "thinking_chars": 0, "data": 0}
    for block in blocks or ():
        kind = field(block, "type")
        if kind == "text":
            text = str(field(block, "text") or "")
            said["text_chars"] += len(text) if text.strip() else 0
        elif kind in ("tool_call", "tool_use"):
            said["tool_calls"] += 1
        elif kind == "thinking":
            said["thinking_chars"] += len(str(field(block, "thinking") or "").strip())
        elif kind is not None:
            said["data"] += 1
    return said
