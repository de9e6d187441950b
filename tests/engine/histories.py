"""Histories for tests: a few by hand, and generated ones with everything that agents produce."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from ctxhealth.engine import Bulk, History, Item, Topic

Count = Callable[[str], int]


def per_char(text: str) -> int:
    return len(text)


def per_four(text: str) -> int:
    return math.ceil(len(text) / 4)


def per_word(text: str) -> int:
    return len(text.split())


def dense(text: str) -> int:
    """Two tokens for a character outside ASCII, a quarter for the others."""
    wide = sum(ord(char) > 127 for char in text)
    return 2 * wide + math.ceil((len(text) - wide) / 4)


def said(name: str, tokens: int, role: str = "assistant", **more: object) -> Item:
    """Return a text item of about four characters a token."""
    text = (f"{name} says what was found in the course of the work. " * tokens)[: 4 * tokens]
    return replace(Item(name, role, "text", tokens, text), **more)  # type: ignore[arg-type]


def called(name: str, *calls: str, tokens: int = 20) -> Item:
    return replace(said(name, tokens), kind="tool_call", calls=calls)


def result(name: str, call: str, tokens: int, read: bool = True, tool: str = "shell") -> Item:
    item = said(name, tokens, role="tool", read=read)
    return replace(item, kind="tool_result", answers=(call,), name=tool)


def turn(name: str, user: int, reply: int) -> Topic:
    return Topic(name, (said(f"{name}.u", user, "user"), said(f"{name}.a", reply)))


def tool_turn(name: str, rounds: int, tokens: int, read: bool = True) -> Topic:
    """Return a topic with one user message and ``rounds`` pairs of call and result."""
    items = [said(f"{name}.u", 20, "user")]
    for n in range(rounds):
        items.append(called(f"{name}.c{n}", f"{name}.{n}"))
        items.append(result(f"{name}.r{n}", f"{name}.{n}", tokens, read))
    return Topic(name, tuple(items))


def sent_ids(history: History) -> list[str]:
    return [item.id for item in history.sent_items()]


@dataclass(frozen=True)
class Case:
    """A generated history with the counter that its agent uses (``None``: it has none)."""

    history: History
    count: Count | None
    texts: bool


_WORDS = st.sampled_from(["a", "word ", "die Zusammenfassung ", "数据 ", "\n", " ", "é", "🙂", "{"])


class _Maker:
    """Draws the parts of one history; ids are numbered so that all are distinct."""

    def __init__(self, draw: st.DrawFn, texts: bool, count: Count | None) -> None:
        self.draw = draw
        self.texts = texts
        self.count = count
        self.serial = 0
        self.unanswered: list[str] = []

    def name(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def item(self, role: str, kind: str, **more: object) -> Item:
        text = self.text() if self.texts and kind != "image" else None
        tokens = self.tokens(text)
        made = Item(self.name(kind[0]), role, kind, tokens, text)
        return replace(made, **more)  # type: ignore[arg-type]

    def text(self) -> str:
        word = self.draw(_WORDS)
        return word * self.draw(st.sampled_from([0, 1, 2, 5, 30, 200, 900, 4000]))

    def tokens(self, text: str | None) -> int:
        """Return the agent's size: its count, sometimes off as a provider's number would be."""
        if text is None:
            return self.draw(st.sampled_from([0, 1, 30, 65, 300, 1500, 9000, 60_000]))
        exact = (self.count or per_four)(text)
        return exact + self.draw(st.sampled_from([0, 0, 0, 4, exact // 2]))

    def items(self) -> list[Item]:
        """Return one turn: a user message and a loop of replies, calls and results."""
        out = [self.item("user", "text")] if self.draw(st.booleans()) else []
        for _ in range(self.draw(st.integers(0, 4))):
            out += self.draw(
                st.sampled_from([self.reply, self.thought, self.image, self.calls, self.late])
            )()
        return out

    def reply(self) -> list[Item]:
        role = self.draw(st.sampled_from(["assistant", "system", "user"]))
        return [self.item(role, self.draw(st.sampled_from(["text", "summary", "data"])))]

    def thought(self) -> list[Item]:
        return [self.item("assistant", "reasoning")]

    def image(self) -> list[Item]:
        return [self.item(self.draw(st.sampled_from(["user", "tool"])), "image")]

    def calls(self) -> list[Item]:
        """Return a message with parallel calls; some results come now, some later or never."""
        ids = [self.name("call") for _ in range(self.draw(st.integers(1, 3)))]
        out = [self.item("assistant", "tool_call", calls=tuple(ids))]
        for call in ids:
            if self.draw(st.integers(0, 3)):
                out.append(self.answer(call))
            else:
                self.unanswered.append(call)
        return out

    def late(self) -> list[Item]:
        """Return a result whose call is in an earlier turn, or nowhere."""
        orphan = not self.unanswered or self.draw(st.booleans())
        return [self.answer(self.name("lost") if orphan else self.unanswered.pop())]

    def answer(self, call: str) -> Item:
        kind = self.draw(st.sampled_from(["tool_result", "tool_result", "image"]))
        read = self.draw(st.integers(0, 3)) > 0
        return self.item("tool", kind, answers=(call,), read=read, name="tool")

    def topic(self) -> Topic:
        title = self.draw(st.sampled_from([None, "a title"]))
        return Topic(self.name("topic"), tuple(self.items()), title)

    def bulk(self, depth: int = 0) -> Bulk:
        shape = self.draw(st.sampled_from(["text", "blank", "unknown", "empty"]))
        if shape == "blank":
            parts: list[Item | Bulk] = list(self.items())
            if depth < 2 and self.draw(st.booleans()):
                parts.append(self.bulk(depth + 1))
            return Bulk(self.name("bulk"), 0, "", len(parts), tuple(parts))
        text = {"text": self.text(), "empty": "", "unknown": None}[shape]
        return Bulk(self.name("bulk"), self.tokens(text), text, self.draw(st.integers(1, 9)))


@st.composite
def cases(draw: st.DrawFn, most_topics: int = 6) -> Case:
    texts = draw(st.booleans())
    count = draw(st.sampled_from([None, per_char, per_four, per_word, dense])) if texts else None
    make = _Maker(draw, texts, count)
    history = History(
        system=draw(st.sampled_from([0, 900])),
        tools=draw(st.sampled_from([0, 1500])),
        extras=draw(st.sampled_from([0, 77])),
        bulks=tuple(make.bulk() for _ in range(draw(st.integers(0, 4)))),
        topics=tuple(make.topic() for _ in range(draw(st.integers(0, most_topics)))),
        current=make.topic() if draw(st.booleans()) else Topic("current"),
    )
    return Case(history, count, texts)
