"""A context as bulks, topics and current topic, with the order of all its items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from .blocks import Part, is_memory, is_request, message_id, parts_of

#: The order of more items is left out of a snapshot: then membership is unknown, not guessed.
MOST_ITEMS = 4_000
_TITLE = 80


@dataclass
class Topic:
    """One turn: a user's message and the loop it started."""

    id: str
    title: str | None = None
    parts: list[Part] = field(default_factory=list)
    messages: int = 0

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


@dataclass
class Structure:
    """``memory``: the parts of the message that stands for what was evicted."""

    memory: list[Part] = field(default_factory=list)
    memory_id: str | None = None
    topics: list[Topic] = field(default_factory=list)

    @property
    def parts(self) -> list[Part]:
        return [*self.memory, *(part for topic in self.topics for part in topic.parts)]

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    @property
    def revision(self) -> str:
        """The input hash: the same for the same items of the same sizes."""
        digest = blake2b(digest_size=16)
        for part in self.parts:
            digest.update(f"{part.id}\0{part.tokens}\0".encode("utf-8", "replace"))
        return digest.hexdigest()


def structure_of(context: Iterable[Any]) -> Structure:
    """Messages before the first user's message are a topic of their own."""
    found = Structure()
    for message in context:
        if is_memory(message):
            found.memory_id = message_id(message)
            found.memory.extend(parts_of(message))
            continue
        if is_request(message) or not found.topics:
            found.topics.append(Topic(message_id(message)))
        topic = found.topics[-1]
        parts = list(parts_of(message))
        topic.parts.extend(parts)
        topic.messages += 1
        if topic.title is None and is_request(message):
            topic.title = _title(parts)
    return found


def _title(parts: Sequence[Part]) -> str | None:
    text = next((part.text for part in parts if part.kind == "text" and part.text), None)
    return None if text is None else " ".join(text.split())[:_TITLE] or None


def snapshot_of(
    found: Structure, *, records: int | None = None, system: int | None = None,
    tools: int | None = None, unread: frozenset[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The fields of ``history.snapshot``. ``records``: spans behind the memory message.

    ``unread``: ids of calls whose results no answered request has carried; None is unknown.
    """
    current = found.topics[-1] if found.topics else Topic("current")
    snapshot: dict[str, Any] = {
        "system": system,
        "tools": tools,
        "bulks": _bulks(found, records),
        "topics": [_topic(topic) for topic in found.topics[:-1]],
        "current": {"tokens": current.tokens, "messages": current.messages},
        "history": found.tokens,
    }
    if len(found.parts) <= MOST_ITEMS:
        snapshot["order"] = _order(found, unread)
    return snapshot


def bulk_id(found: Structure) -> str:
    return f"memory:{found.memory_id}"


def _bulks(found: Structure, records: int | None) -> list[dict[str, Any]]:
    if not found.memory:
        return []
    tokens = sum(part.tokens for part in found.memory)
    bulk: dict[str, Any] = {"id": bulk_id(found), "tokens": tokens}
    return [bulk if records is None else {**bulk, "records": records}]


def _topic(topic: Topic) -> dict[str, Any]:
    largest = max((part.tokens for part in topic.parts), default=None)
    fields = {
        "id": topic.id, "tokens": topic.tokens, "messages": topic.messages, "title": topic.title,
        "largest": largest,
    }  # fmt: skip
    return {key: value for key, value in fields.items() if value is not None}


def _order(found: Structure, unread: frozenset[str] | None) -> list[dict[str, Any]]:
    order: list[dict[str, Any]] = []
    for topic in found.topics:
        where = "current" if topic is found.topics[-1] else topic.id
        order.extend(_member(part, where, unread) for part in topic.parts)
    return order


def _member(part: Part, where: str, unread: frozenset[str] | None) -> dict[str, Any]:
    member: dict[str, Any] = {
        "id": part.id, "role": part.role, "kind": part.kind, "tokens": part.tokens, "in": where,
    }  # fmt: skip
    if part.call:
        member["calls"] = [part.call]
    if part.answer:
        member["answers"] = [part.answer]
        if unread is not None and part.answer in unread:
            member["read"] = False
    if part.name:
        member["name"] = part.name
    return member
