"""A demo chat's body: its real history, and the report of everything that happens to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import sleep
from typing import Any

from ctxhealth.client import Chat
from ctxhealth.demo.prose import count, prose
from ctxhealth.demo.provider import ChatModel, Refused, Reply
from ctxhealth.engine import Bulk, History, Item, Topic


@dataclass(frozen=True)
class Spec:
    """What is fixed about a chat; sizes in tokens, ``ratio`` local count over provider count."""

    id: str
    title: str
    model: str
    provider: str
    window: int
    system: int
    tools: int
    trigger: dict[str, Any] | None = None
    history_limit: int | None = None
    utility: dict[str, Any] | None = None
    ratio: float = 1.0

    def facts(self) -> dict[str, Any]:
        """What the chat tells when it opens; a reserve is left out, as most agents do."""
        return {
            "title": self.title,
            "model": self.model,
            "provider": self.provider,
            "window": self.window,
            "system": self.system,
            "tools": self.tools,
            "trigger": self.trigger,
            "history_limit": self.history_limit,
            "utility": self.utility,
        }


class Body:
    """History and reporting of one chat. Not thread-safe: its loop's thread owns it.

    ``latency`` is how long a model takes to answer, in seconds. ``ratio`` is the agent's own count
    over the provider's. ``run`` sets the ids of one process apart from those of an earlier one
    that lived the same chat.
    """

    def __init__(self, chat: Chat, spec: Spec, latency: float = 0.0, run: str = "") -> None:
        self.chat, self.spec, self.latency = chat, spec, latency
        self.run = run
        self.history = History(system=spec.system, tools=spec.tools)
        self.ratio = spec.ratio
        self.turn: str | None = None
        self.outcome: str | None = None
        self.compactions = 0
        self._ids = 0
        self._requests = 0

    # sizes ---------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Tokens of the history by the agent's own count."""
        return self.history.total("history")

    @property
    def prompt(self) -> int:
        """Tokens of the prompt as the provider counts them."""
        return round(self.history.total("prompt") / self.ratio)

    # history -------------------------------------------------------------------------------

    def new_id(self, kind: str) -> str:
        self._ids += 1
        return f"{kind}{self.run}{self._ids}"

    def preload(self, sizes: Iterable[int], *, bulks: Iterable[int] = ()) -> None:
        """Fill the history with past topics of these sizes: what a restarted agent loads."""
        made = tuple(self._past_topic(tokens) for tokens in sizes)
        kept = tuple(
            Bulk(self.new_id("bulk"), tokens, prose(tokens, tokens), records=3) for tokens in bulks
        )
        self.history = replace(self.history, bulks=kept, topics=made)

    def _past_topic(self, tokens: int) -> Topic:
        ask = min(120, tokens // 4)
        shares = (ask, tokens - ask)
        roles = ("user", "assistant")
        items = tuple(
            self._item(role, "text", prose(share, share + self._ids))
            for role, share in zip(roles, shares, strict=True)
        )
        return Topic(self.new_id("topic"), items)

    def _item(self, role: str, kind: str, text: str, **links: Any) -> Item:
        return Item(self.new_id("m"), role, kind, self.count(text), text=text, **links)

    def count(self, text: str) -> int:
        """Tokens of ``text`` as this agent counts them now."""
        return round(count(text) * self.ratio / self.spec.ratio)

    def begin(self, text: str, kind: str = "user") -> None:
        """A user's message: the current topic becomes a past one, and a turn begins."""
        past = self.history.topics
        if self.history.current.items:
            past = (*past, self.history.current)
        self.history = replace(
            self.history, topics=past, current=Topic(self.new_id("topic"), title=text[:60])
        )
        self.resume(kind)
        self.add("user", "text", text)

    def resume(self, kind: str = "continuation") -> None:
        """Open a turn on the history as it is."""
        self.turn = self.new_id("turn")
        self.chat.turn_started(self.turn, kind=kind)

    def end(self, outcome: str, error: str | None = None) -> None:
        if self.turn is not None:
            self.chat.turn_ended(self.turn, outcome, error=error)
        self.turn, self.outcome = None, outcome
        self.snapshot()

    def add(
        self, role: str, kind: str, text: str, unusable: str | None = None, **links: Any
    ) -> Item:
        """Append an item to the current topic and report it."""
        item = self._item(role, kind, text, **links)
        current = self.history.current
        self.history = replace(self.history, current=replace(current, items=(*current.items, item)))
        self.chat.message_added(
            id=item.id,
            role=role,
            kind=kind,
            tokens=item.tokens,
            chars=len(text),
            name=item.name,
            calls=list(item.calls) or None,
            answers=list(item.answers) or None,
            read=item.read if item.is_result else None,
            turn=self.turn,
            topic=current.id,
            excerpt=text[:120],
            unusable=unusable,
        )
        return item

    def replace_history(self, history: History) -> None:
        self.history = history

    # reports -------------------------------------------------------------------------------

    def snapshot(self) -> None:
        history = self.history
        self.chat.history_snapshot(
            revision=history.revision[:16],
            system=history.system,
            tools=history.tools,
            bulks=[_bulk(bulk) for bulk in history.bulks],
            topics=[_topic(topic) for topic in history.topics],
            current={"tokens": history.current.tokens, "messages": len(history.current.items)},
            history=self.size,
            order=list(_order(history)),
        )

    def ask(self, model: ChatModel, wish: str, calls: tuple[str, ...] = ()) -> Reply:
        """One chat request, reported on both sides. Raises the provider's Refused."""
        request = self.request_id()
        prompt = self.prompt
        local = self.history.total("prompt")
        self.chat.request_sent(request, local=local, revision=self.history.revision[:16])
        try:
            self.wait()
            reply = model.answer(prompt, wish, calls)
        except Refused as refused:
            self.failed(request, refused, "chat")
            raise
        self.chat.model_replied(
            request,
            usage=dict(reply.usage),
            finish=reply.finish,
            content={
                "text_chars": len(reply.text),
                "tool_calls": len(reply.calls),
            },
            model=self.spec.model,
            ms=round(self.latency * 1000) or None,
        )
        self._mark_read()
        return reply

    def failed(self, request: str, refused: Refused, purpose: str) -> None:
        self.chat.model_failed(
            request,
            refused.error,
            purpose=purpose,
            status=refused.status or None,
            detail=refused.detail,
            **refused.stated,
        )

    def wait(self) -> None:
        """The time a model takes."""
        sleep(self.latency)

    def request_id(self) -> str:
        self._requests += 1
        return f"{self.spec.id}-r{self.run}{self._requests}"

    def _mark_read(self) -> None:
        """A model has now seen every result: only then may a fallback touch it."""
        current = self.history.current
        items = tuple(item if item.read else replace(item, read=True) for item in current.items)
        self.history = replace(self.history, current=replace(current, items=items))


def _bulk(bulk: Bulk) -> dict[str, Any]:
    return {"id": bulk.id, "tokens": bulk.tokens, "records": bulk.records}


def _topic(topic: Topic) -> dict[str, Any]:
    return {
        "id": topic.id,
        "tokens": topic.tokens,
        "messages": len(topic.items),
        "title": topic.title,
        "largest": max((item.tokens for item in topic.items), default=None),
    }


def _order(history: History) -> Iterable[dict[str, Any]]:
    for bulk in history.bulks:
        # A bulk whose summary came back blank still sends what it was made from.
        for item in bulk.sent() if bulk.is_blank else ():
            yield _member(item, bulk.id)
    for topic in history.topics:
        for item in topic.items:
            yield _member(item, topic.id)
    for item in history.current.items:
        yield _member(item, "current")


def _member(item: Item, where: str) -> dict[str, Any]:
    member: dict[str, Any] = {
        "id": item.id, "role": item.role, "kind": item.kind, "tokens": item.tokens, "in": where,
    }  # fmt: skip
    if item.calls:
        member["calls"] = list(item.calls)
    if item.answers:
        member["answers"] = list(item.answers)
        member["read"] = item.read
    return member
