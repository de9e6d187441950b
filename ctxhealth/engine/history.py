"""A chat's history as a compaction sees it: bulks, topics, the current topic, and their sizes.

Everything is immutable; a change gives a new history. Sizes are tokens. Texts are optional: where
an item's text is unknown (``None``) every rule works on its size alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from .reading import Reader

Scope = Literal["prompt", "history"]

#: Items that carry what a person wrote. Notices of the framework (continuation stubs, tracebacks,
#: reminders) must not use the role ``user``, or they would be taken for the unanswered message.
_USER_KINDS = frozenset({"text", "image", "data"})
_AS_JSON = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Item:
    """One message, or one part of a message, that the model is sent.

    ``calls`` are the ids of the tool calls it makes, ``answers`` the ids it gives results for.
    ``read`` is False for a tool result that no successful model call has seen yet.
    ``chars`` is its length where the text itself is unknown.
    """

    id: str
    role: str
    kind: str
    tokens: int
    text: str | None = None
    name: str | None = None
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    read: bool = True
    chars: int | None = None

    @property
    def is_user_message(self) -> bool:
        return self.role == "user" and self.kind in _USER_KINDS and not self.answers

    @property
    def is_result(self) -> bool:
        return bool(self.answers) or self.kind == "tool_result"

    @property
    def is_call(self) -> bool:
        return bool(self.calls) or self.kind == "tool_call"

    def to_dict(self) -> dict[str, object]:
        """Return the item as JSON values; fields at their default are left out."""
        full: dict[str, object] = {
            "id": self.id,
            "role": self.role,
            "kind": self.kind,
            "tokens": self.tokens,
            "text": self.text,
            "name": self.name,
            "calls": list(self.calls),
            "answers": list(self.answers),
            "chars": self.chars,
        }
        out = {key: value for key, value in full.items() if value is not None and value != []}
        if not self.read:
            out["read"] = False
        return out


@dataclass(frozen=True)
class Bulk:
    """Topics that are already summarised: one text that stands for ``records`` topics.

    ``items`` are what the text was made from, where the agent keeps it. A *blank* text with items
    means that the summary failed and the items themselves are still sent: then ``tokens`` is the
    sum of their sizes, whatever was given. A text of ``None`` is merely unknown.
    """

    id: str
    tokens: int
    text: str | None = None
    records: int = 1
    items: tuple[Item | Bulk, ...] = ()

    def __post_init__(self) -> None:
        if self.is_blank:
            object.__setattr__(self, "tokens", sum(part.tokens for part in self.items))

    @property
    def is_blank(self) -> bool:
        """Whether the summary is empty and the items behind it are sent instead."""
        return bool(self.items) and self.text is not None and not self.text.strip()

    def sent(self) -> Iterator[Item]:
        """Yield the items that a blank bulk sends, nested ones included, oldest first."""
        stack: list[Item | Bulk] = [self]
        while stack:
            part = stack.pop()
            if isinstance(part, Item):
                yield part
            elif part.is_blank:
                stack.extend(reversed(part.items))
            else:
                yield Item(part.id, "system", "summary", part.tokens, part.text)

    def to_dict(self) -> dict[str, object]:
        out: dict[str, object] = {"id": self.id, "tokens": self.tokens, "records": self.records}
        if self.text is not None:
            out["text"] = self.text
        if self.items:
            out["items"] = [
                {"bulk": part.to_dict()} if isinstance(part, Bulk) else part.to_dict()
                for part in self.items
            ]
        return out


@dataclass(frozen=True)
class Topic:
    """One turn: a user message and the loop it started."""

    id: str
    items: tuple[Item, ...] = ()
    title: str | None = None

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.items)

    def to_dict(self) -> dict[str, object]:
        out: dict[str, object] = {"id": self.id, "items": [item.to_dict() for item in self.items]}
        if self.title is not None:
            out["title"] = self.title
        return out


@dataclass(frozen=True)
class History:
    """The whole of what is sent: bulks (oldest), topics (past turns), current topic.

    ``system``, ``tools`` and ``extras`` are the sizes of what is sent beside the history. ``None``
    is unknown: then only the scope ``history`` can be planned.
    """

    system: int | None = None
    tools: int | None = None
    extras: int | None = 0
    bulks: tuple[Bulk, ...] = ()
    topics: tuple[Topic, ...] = ()
    current: Topic = field(default_factory=lambda: Topic("current"))

    @property
    def fixed(self) -> int | None:
        """Tokens of system prompt and tool schemas, which no compaction can touch."""
        if self.system is None or self.tools is None:
            return None
        return self.system + self.tools

    @property
    def beside(self) -> int | None:
        """Tokens of all that is sent beside the history: fixed part and extras."""
        if self.fixed is None or self.extras is None:
            return None
        return self.fixed + self.extras

    def total(self, scope: Scope = "history") -> int:
        """Return the tokens in one scope.

        Raises ValueError where the scope is ``prompt`` and a size beside the history is unknown.
        """
        parts = self.totals()
        size = sum(parts[name] or 0 for name in ("bulks", "topics", "current"))
        if scope == "history":
            return size
        if scope != "prompt":
            raise ValueError(f"scope: must be 'prompt' or 'history', not {scope!r}")
        if self.beside is None:
            missing = [name for name in ("system", "tools", "extras") if parts[name] is None]
            raise ValueError(f"{missing[0]}: size unknown, so the prompt's total is unknown")
        return size + self.beside

    def totals(self) -> dict[str, int | None]:
        """Return the tokens of each part; ``None`` is unknown."""
        return {
            "system": self.system,
            "tools": self.tools,
            "extras": self.extras,
            "bulks": sum(bulk.tokens for bulk in self.bulks),
            "topics": sum(topic.tokens for topic in self.topics),
            "current": self.current.tokens,
        }

    def sent_items(self) -> Iterator[Item]:
        """Yield every item that is sent verbatim, oldest first (summaries in bulks are not)."""
        for bulk in self.bulks:
            if bulk.is_blank:
                yield from bulk.sent()
        for topic in self.topics:
            yield from topic.items
        yield from self.current.items

    @property
    def head_anchor(self) -> Item | None:
        """The first user message that is still sent verbatim."""
        return next((item for item in self.sent_items() if item.is_user_message), None)

    @property
    def last_user_message(self) -> Item | None:
        last = None
        for item in self.sent_items():
            last = item if item.is_user_message else last
        return last

    @cached_property
    def revision(self) -> str:
        """Return the input hash: sha256 (hex) over bulks, topics and current topic.

        What is beside the history is left out: extras change with every step (a clock, a memory
        recall) and would make an unchanged history look new.
        """
        digest = hashlib.sha256()
        for row in _rows(self):
            digest.update(_AS_JSON(row).encode("ascii"))
        return digest.hexdigest()

    def to_dict(self) -> dict[str, object]:
        """Return the history as JSON values; ``from_dict`` gives an equal history back."""
        return {
            "system": self.system,
            "tools": self.tools,
            "extras": self.extras,
            "bulks": [bulk.to_dict() for bulk in self.bulks],
            "topics": [topic.to_dict() for topic in self.topics],
            "current": self.current.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: object) -> History:
        """Read what ``to_dict`` wrote. Raises HistoryError naming the field and the reason."""
        read = Reader(data)
        return cls(
            system=read.size_or_none("system"),
            tools=read.size_or_none("tools"),
            extras=read.size_or_none("extras"),
            bulks=tuple(_bulk(part) for part in read.many("bulks")),
            topics=tuple(_topic(part) for part in read.many("topics")),
            current=_topic(read.one("current")) if read.has("current") else Topic("current"),
        )


def _rows(history: History) -> Iterator[tuple[object, ...]]:
    """Yield all that the input hash depends on, one small tuple at a time."""
    for bulk in history.bulks:
        yield from _bulk_rows(bulk)
    for topic in (*history.topics, history.current):
        yield "topic", topic.id, topic.title
        yield from map(_item_row, topic.items)


def _bulk_rows(bulk: Bulk) -> Iterator[tuple[object, ...]]:
    yield "bulk", bulk.id, bulk.tokens, bulk.text, bulk.records, len(bulk.items)
    for part in bulk.items:
        if isinstance(part, Bulk):
            yield from _bulk_rows(part)
        else:
            yield _item_row(part)


def _item_row(item: Item) -> tuple[object, ...]:
    text = (item.id, item.role, item.kind, item.tokens, item.text, item.name)
    return (*text, item.calls, item.answers, item.read, item.chars)


def _topic(read: Reader) -> Topic:
    items = tuple(_item(part) for part in read.many("items"))
    return Topic(read.text("id"), items, read.text_or_none("title"))


def _bulk(read: Reader) -> Bulk:
    return Bulk(
        id=read.text("id"),
        tokens=read.size("tokens"),
        text=read.text_or_none("text"),
        records=read.size("records", 1),
        items=tuple(
            _bulk(part.one("bulk")) if part.has("bulk") else _item(part)
            for part in read.many("items")
        ),
    )


def _item(read: Reader) -> Item:
    return Item(
        id=read.text("id"),
        role=read.text("role"),
        kind=read.text("kind"),
        tokens=read.size("tokens"),
        text=read.text_or_none("text"),
        name=read.text_or_none("name"),
        calls=read.texts("calls"),
        answers=read.texts("answers"),
        read=read.flag("read", True),
        chars=read.size_or_none("chars"),
    )
