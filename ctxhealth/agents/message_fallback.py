"""The engine's fallback over an app's own list of messages: ``offer_fallback(chat, get, set)``.

    offer_fallback(chat, lambda: agent.messages, agent.replace, backup_dir="backups")

``compact_fallback``, ``repair_pairs``, ``restore_backup`` and ``snapshot`` then work on that list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from ctxhealth.agents.message_shapes import SHAPES, Part, Shape
from ctxhealth.client import Chat, Failed
from ctxhealth.engine import Bulk, History, Item, Topic

HEAD = "[Earlier messages, shortened by rule, not by a model]\n\n"
# Providers count pictures between some hundred and 1,600 tokens.
_IMAGE_TOKENS = 1_200
Count = Callable[[str], int]


def offer_fallback(
    chat: Chat,
    get_messages: Callable[[], Any],
    set_messages: Callable[[list[Any]], Any],
    *,
    backup_dir: str,
    shape: str = "openai",
    count: Count | None = None,
    **options: Any,
) -> None:
    """Let operators force a compaction of the list that ``get_messages`` gives.

    ``set_messages`` takes the list that is to be sent from now on. ``shape``: openai (chat
    completions), anthropic or langchain. ``count``: the app's tokenizer; a quarter of a token a
    character without one. ``options``: lock, scope, target, safe_point as in
    ``Reporter.use_engine``. Raises ValueError for an unknown shape.
    """
    if shape not in SHAPES:
        raise ValueError(f"shape: {shape!r} is not one of {', '.join(SHAPES)}")
    kept = Messages(SHAPES[shape], count or _by_length)
    chat.reporter.use_engine(
        chat,
        get_history=lambda: kept.history(list(get_messages())),
        set_history=lambda history: set_messages(kept.messages(history)),
        backup_dir=backup_dir,
        count=kept.count,
        **options,
    )


class Messages:
    """Turns a list into a history and back; remembers the messages by the names of their parts."""

    def __init__(self, shape: Shape, count: Count) -> None:
        self.count = count
        self._shape = shape
        self._known: dict[str, tuple[Any, list[Part]]] = {}
        self._system: list[Any] = []

    def history(self, messages: list[Any]) -> History:
        """The list as the engine sees it; system messages at its head count as fixed."""
        head = next((n for n, m in enumerate(messages) if not self._is_system(m)), len(messages))
        self._system = messages[:head]
        bulks: list[Bulk] = []
        topics: list[list[Item]] = [[]]
        seen: dict[str, int] = {}
        answered = self._last_answer(messages)
        for number, message in enumerate(messages[head:], start=head):
            name, parts = self._remember(message, seen)
            text = parts[0].text if parts else ""
            if text.startswith(HEAD):
                bulks.append(Bulk(name, self.count(text), text.removeprefix(HEAD)))
                continue
            items = self._items(name, parts, read=number < answered)
            if topics[-1] and any(item.is_user_message for item in items):
                topics.append([])
            topics[-1].extend(items)
        return History(
            system=sum(self._size(part) for m in self._system for part in self._shape.parts(m)),
            bulks=tuple(bulks),
            topics=tuple(Topic(f"t-{t[0].id}", tuple(t)) for t in topics[:-1] if t),
            current=Topic(f"t-{topics[-1][0].id}" if topics[-1] else "now", tuple(topics[-1])),
        )

    def messages(self, history: History) -> list[Any]:
        """The list that a history stands for. Raises Failed where a message is not known here."""
        out = list(self._system)
        told = [bulk.text for bulk in history.bulks if bulk.text and bulk.text.strip()]
        if told:
            out.append(self._shape.summary(HEAD + "\n\n".join(told)))
        items = [item for topic in (*history.topics, history.current) for item in topic.items]
        for name, parts in _by_message(items):
            if name not in self._known:
                raise Failed(
                    "the backup holds messages of an earlier run of this app, which only that "
                    "run could put back; they are in the file"
                )
            out.append(self._message(*self._known[name], parts))
        return out

    def _message(self, message: Any, parts: list[Part], texts: dict[int, str]) -> Any:
        now = [texts.get(number) for number in range(len(parts))]
        if now == [part.text for part in parts]:
            return message
        return self._shape.with_texts(message, now)

    def _remember(self, message: Any, seen: dict[str, int]) -> tuple[str, list[Part]]:
        """A name by content, so that the same message has the same one after a restore."""
        parts = self._shape.parts(message)
        said = json.dumps([list(vars(part).values()) for part in parts])
        digest = blake2b(said.encode("utf-8", "replace"), digest_size=8).hexdigest()
        seen[digest] = seen.get(digest, 0) + 1
        name = digest if seen[digest] == 1 else f"{digest}~{seen[digest]}"
        self._known.setdefault(name, (message, parts))
        return name, parts

    def _items(self, name: str, parts: Iterable[Part], *, read: bool) -> list[Item]:
        return [
            Item(
                f"{name}/{number}",
                part.role,
                part.kind,
                self._size(part),
                part.text,
                part.name,
                (part.call,) if part.call else (),
                (part.answers,) if part.answers else (),
                read,
            )
            for number, part in enumerate(parts)
        ]

    def _size(self, part: Part) -> int:
        if part.kind == "image":
            return _IMAGE_TOKENS
        return self.count(part.text)

    def _is_system(self, message: Any) -> bool:
        parts = self._shape.parts(message)
        return bool(parts) and all(part.role == "system" for part in parts)

    def _last_answer(self, messages: list[Any]) -> int:
        """The number of the newest message of a model: it has read what stands before."""
        for number in range(len(messages) - 1, -1, -1):
            if any(part.role == "assistant" for part in self._shape.parts(messages[number])):
                return number
        return 0


def _by_message(items: Iterable[Item]) -> Iterable[tuple[str, dict[int, str]]]:
    """Neighbouring parts of one message, by number."""
    name: str | None = None
    texts: dict[int, str] = {}
    for item in items:
        owner, _, number = item.id.rpartition("/")
        if owner != name:
            if name is not None:
                yield name, texts
            name, texts = owner, {}
        texts[int(number) if number.isdigit() else 0] = item.text or ""
    if name is not None:
        yield name, texts


def _by_length(text: str) -> int:
    return math.ceil(len(text) / 4)
