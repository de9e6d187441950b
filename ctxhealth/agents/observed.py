"""Model calls of an app as its client library makes them, reported and never disturbed.

The library's objects are read by their attributes alone, so none of them is imported here and any
version will do. What goes wrong in here is swallowed and counted: the call itself goes on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ctxhealth.agents.call_failures import failure_of
from ctxhealth.agents.following import Follower, Member, tell
from ctxhealth.client import Chat

log = logging.getLogger("ctxhealth.client")
_T = TypeVar("_T")
_TALKS = 1_000
ChatSource = Chat | Callable[[], "Chat | None"]


@dataclass
class Sent:
    """What is known of a request. ``delta``: the provider holds the rest of the conversation.

    ``messages``: the list that is sent, None where it is not at hand; ``parts`` reads one of them.
    """

    model: str | None = None
    max_output: int | None = None
    delta: bool | None = None
    messages: Sequence[Any] | None = None
    parts: Callable[[Any], Iterable[Member]] = tuple


@dataclass
class Reply:
    """What is known of a reply. ``content`` None: nobody looked at all of it."""

    usage: dict[str, Any] | None = None
    content: dict[str, int] | None = None
    finish: str | None = None
    model: str | None = None


class Dialect(Protocol):
    """How one library says what was sent, what was answered, and what a stream adds up to."""

    def sent(self, given: Mapping[str, Any]) -> Sent: ...
    def reply(self, result: Any) -> Reply: ...
    def gather(self) -> Gather: ...


class Gather(Protocol):
    """A stream, event by event. ``ended``: the provider said that it is complete."""

    ended: bool

    def add(self, event: Any) -> None: ...
    def reply(self) -> Reply: ...


@dataclass
class Talk:
    """What is remembered of one chat between its calls."""

    follower: Follower
    empty: int = 0
    turn: str | None = None
    # A turn that somebody else told.
    given: str | None = None
    failure: str | None = None


class Observer:
    """Reports the calls of one client. ``mistakes`` counts what went wrong in the reporting.

    ``chat``: a chat's handle, or a function that gives the one that a call belongs to (None:
    report nothing). ``messages``: tell what enters the history, by comparing the lists sent.
    ``turns``: begin a turn at each new message of the user, end it at a reply without tool
    calls. ``count``: the app's own token count of the arguments of a call.
    """

    def __init__(
        self,
        chat: ChatSource,
        *,
        provider: str | None = None,
        messages: bool = True,
        turns: bool = False,
        count: Callable[[Mapping[str, Any]], int] | None = None,
    ) -> None:
        self._source, self._provider = chat, provider
        self.messages, self.turns, self.count = messages, turns, count
        self.mistakes = 0
        self.last_mistake: str | None = None
        self._talks: dict[str, Talk] = {}
        self._lock = threading.Lock()

    def quietly(self, step: Callable[..., _T], *given: Any) -> _T | None:
        """What ``step`` returns, None where it fails."""
        try:
            return step(*given)
        except Exception as error:
            self.mistakes += 1
            self.last_mistake = f"{type(error).__name__}: {error}"[:400]
            if self.mistakes == 1:
                log.warning("a model call could not be reported", exc_info=True)
            return None

    def begin(self, dialect: Dialect, given: Mapping[str, Any]) -> Call | None:
        """A call leaves; None where it belongs to no chat or cannot be reported."""
        return self.quietly(self._begin, dialect, given)

    def talk(self, chat: Chat) -> Talk:
        with self._lock:
            talk = self._talks.get(chat.id)
            if talk is None:
                talk = self._talks[chat.id] = Talk(Follower(chat.reporter.names.mint))
            while len(self._talks) > _TALKS:
                del self._talks[next(iter(self._talks))]
            return talk

    def chat(self) -> Chat | None:
        """The chat that a call made here and now belongs to."""
        return self._source if isinstance(self._source, Chat) else self._source()

    def within(self, chat: Chat, turn: str | None) -> None:
        """What enters the history of ``chat`` belongs to ``turn``, which others begin and end."""
        self.talk(chat).given = turn

    def _begin(self, dialect: Dialect, given: Mapping[str, Any]) -> Call | None:
        chat = self.chat()
        if chat is None:
            return None
        sent, talk = dialect.sent(given), self.talk(chat)
        facts = {"model": sent.model, "provider": self._provider}
        news: dict[str, Any] = {
            key: value
            for key, value in facts.items()
            if value is not None and chat.facts.get(key) is None
        }
        if news:
            chat.updated(**news)
        if sent.messages is not None and self.messages and not sent.delta:
            self._follow(chat, talk, sent)
        local = self.quietly(self.count, given) if self.count is not None else None
        request = chat.request_sent(
            local=local, max_output=sent.max_output, delta=sent.delta or None
        )
        return Call(self, chat, talk, request)

    def _follow(self, chat: Chat, talk: Talk, sent: Sent) -> None:
        with self._lock:
            fresh, cut = talk.follower.compare(sent.messages or (), sent.parts)
            for id, member in fresh:
                # What stands before the user's new message still belongs to the turn before.
                if self.turns and member.is_user:
                    end_turn(chat, talk.turn, talk)
                    talk.turn = chat.turn_started()
                tell(chat, id, member, talk.given or talk.turn)
            if cut:
                chat.history_snapshot(order=talk.follower.order())


class Call:
    """One call that is open. Each may end once; what comes later is ignored."""

    def __init__(self, observer: Observer, chat: Chat, talk: Talk, request: str) -> None:
        self._observer, self._chat, self._talk = observer, chat, talk
        self._request = request
        self._began = time.monotonic()
        self._over = False

    def replied(self, reply: Reply) -> None:
        self._observer.quietly(self._replied, reply)

    def failed(self, error: BaseException) -> None:
        self._observer.quietly(self._failed, error)

    def took(self, dialect: Dialect, result: Any) -> None:
        """A whole reply came."""
        reply = self._observer.quietly(dialect.reply, result)
        self.replied(reply if reply is not None else Reply())

    def gathered(self, gather: Gather) -> None:
        """A stream ended; broken off, its usage and the rest of its content are unknown."""
        reply = self._observer.quietly(gather.reply) or Reply()
        if not gather.ended:
            seen = reply.content if any((reply.content or {}).values()) else None
            reply = Reply(None, seen, reply.finish, reply.model)
        self.replied(reply)

    def quietly(self, step: Callable[..., _T], *given: Any) -> _T | None:
        return self._observer.quietly(step, *given)

    def _replied(self, reply: Reply) -> None:
        if self._end():
            return
        chat, content = self._chat, reply.content
        self._talk.failure = None
        chat.model_replied(
            self._request, usage=reply.usage, content=content, finish=reply.finish,
            model=reply.model, ms=self._ms(),
        )  # fmt: skip
        if content is None:
            return
        seen = any(content.get(part) for part in ("text_chars", "tool_calls", "data"))
        self._talk.empty = 0 if seen or content.get("thinking_chars") else self._talk.empty + 1
        if self._talk.empty:
            usage = reply.usage or {}
            chat.reply_empty(
                self._talk.empty, request=self._request, prompt=prompt_of(usage),
                completion=usage.get("output"), finish=reply.finish,
            )  # fmt: skip
        if seen and not content.get("tool_calls"):
            self._end_turn("answered")

    def _failed(self, error: BaseException) -> None:
        if self._end():
            return
        failure = failure_of(error)
        self._talk.failure = str(failure["detail"] or failure["error"])
        self._chat.model_failed(self._request, ms=self._ms(), **failure)
        if failure["error"] == "cancelled":
            self._end_turn("cancelled")

    def _end_turn(self, outcome: str) -> None:
        turn, self._talk.turn = self._talk.turn, None
        if turn is not None:
            self._chat.turn_ended(turn, outcome)

    def _end(self) -> bool:
        before, self._over = self._over, True
        return before

    def _ms(self) -> int:
        return int((time.monotonic() - self._began) * 1000)


def end_turn(chat: Chat, turn: str | None, talk: Talk) -> None:
    """A turn that never ended is over when the next one begins: nobody answers it any more."""
    if turn is not None:
        outcome = "error" if talk.failure else "silent"
        chat.turn_ended(turn, outcome, talk.failure)
        talk.failure = None


def prompt_of(usage: Mapping[str, Any]) -> int | None:
    """The whole prompt of a usage, in its own dialect."""
    prompt: int | None = usage.get("input")
    if prompt is not None and usage.get("dialect") == "anthropic":
        prompt += (usage.get("cache_read") or 0) + (usage.get("cache_write") or 0)
    return prompt


def whole(value: Any) -> int | None:
    """A count as libraries hand it out; anything else is unknown."""
    return value if type(value) is int and value >= 0 else None


def text_chars(text: Any) -> int:
    """Characters of a text that has something in it."""
    return len(text) if isinstance(text, str) and text.strip() else 0
