"""One chat's events as its agent sends them: names, times, and what the runtime leaves unsaid."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from ctxhealth.wire import events as wire
from ctxhealth.wire.parts import Content, Usage
from ctxhealth.wire.types import ItemKind, Role
from tests.population.runtimes import Model, Runtime

SECOND = 1_000
HOUR = 3_600 * SECOND


class Timed(NamedTuple):
    """``at``: the server's ms at which the event is folded."""

    at: int
    event: wire.Event


class Item(NamedTuple):
    """What is in the context, in the provider's tokens, the agent's own, and bytes sent."""

    id: str
    role: Role
    kind: ItemKind
    tokens: int
    own: int
    bytes: int
    calls: list[str] | None = None
    answers: list[str] | None = None


class Teller:
    """Keeps the clock, the names and the habits of one agent; every method sends one event."""

    def __init__(self, chat: str, runtime: Runtime, random: Random, start: int) -> None:
        self.chat, self.runtime, self.random = chat, runtime, random
        self.now = start
        self.told: list[Timed] = []
        self.names = 0
        # The agent's own tokenizer against the provider's, alike for all of its chats.
        self.own = random.uniform(0.88, 1.12)
        self.tells_images = random.random() < 0.5
        # Of JSON on the wire: code is dense, escaped text is not.
        self.bytes_a_token = random.uniform(3.2, 4.8)

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def wait(self, seconds: float) -> None:
        self.now += max(1, int(seconds * SECOND))

    def say(self, kind: type[wire.Envelope], /, **fields: Any) -> None:
        event = kind(seq=len(self.told) + 1, ts=self.now, chat=self.chat, **fields)
        self.told.append(Timed(self.now, event))  # type: ignore[arg-type]

    def count(self, tokens: int) -> int:
        """The agent's own count of ``tokens`` of the provider's; the same text, the same count."""
        return int(tokens * self.own)

    def item(self, role: Role, kind: ItemKind, tokens: int, **fields: Any) -> Item:
        """Into the history; its size is told the way this runtime tells sizes."""
        item = Item(
            self.name("m"), role, kind, tokens, self.count(tokens),
            int(tokens * self.bytes_a_token), fields.get("calls"), fields.get("answers"),
        )  # fmt: skip
        sizes: dict[str, int] = {
            "tokens": {"tokens": item.own},
            "chars": {"chars": int(tokens * self.random.uniform(3.2, 4.4))},
            "bytes": {"bytes": item.bytes},
        }[self.runtime.sizes]
        self.say(wire.MessageAdded, id=item.id, role=role, kind=kind, **sizes, **fields)
        return item

    def image(self, tokens: int, turn: str) -> Item:
        """Base64 on the wire, and nobody counts its tokens before the provider does."""
        size = self.random.randint(80_000, 700_000)
        item = Item(self.name("m"), "user", "image", tokens, 0, size)
        self.say(wire.MessageAdded, id=item.id, role="user", kind="image", bytes=size, turn=turn)
        return item

    def sent(
        self, request: str, load: int, bytes: int, images: int, grown: int, cap: int | None
    ) -> None:
        fields: dict[str, Any] = {}
        if self.runtime.counts_requests:
            fields["local"] = self.count(grown if self.runtime.delta else load)
        if self.runtime.tells_bytes:
            fields["bytes"] = int(grown * self.bytes_a_token) if self.runtime.delta else bytes
            fields["images"] = (images or None) if self.tells_images else None
        if self.runtime.delta:
            fields["delta"] = True
        self.say(wire.RequestSent, request=request, max_output=cap, **fields)

    def replied(
        self, request: str, model: Model, usage: Usage | None, content: Content, finish: str
    ) -> None:
        self.say(
            wire.ModelReplied,
            request=request,
            usage=usage,
            content=content,
            finish=finish,
            model=model.id if self.random.random() < 0.5 else None,
        )


def usage(random: Random, model: Model, load: int, output: int) -> Usage:
    """Usage in the provider's dialect; most of a prompt comes from the cache."""
    cached = int(load * random.uniform(0.7, 0.99)) if random.random() < 0.9 else 0
    if model.dialect == "anthropic":
        written = int((load - cached) * random.uniform(0.5, 1.0))
        return Usage(
            dialect="anthropic", input=load - cached - written, output=output,
            cache_read=cached, cache_write=written,
        )  # fmt: skip
    return Usage(dialect=model.dialect, input=load, output=output, cache_read=cached)
