"""An Anthropic client, sync or async, whose calls are reported: ``observe(Anthropic(), chat)``.

``messages`` and ``beta.messages``: create, whole or streamed, parse, and the ``stream`` helper.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from ctxhealth.agents.anthropic_messages import message_parts
from ctxhealth.agents.following import read
from ctxhealth.agents.observed import (
    Call,
    ChatSource,
    Dialect,
    Observer,
    Reply,
    Sent,
    text_chars,
    whole,
)
from ctxhealth.agents.patched import Observed

_PATHS = (("messages",), ("beta", "messages"))
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


def observe(client: Any, chat: ChatSource, **options: Any) -> Observed:
    """Report the calls of ``client`` as those of ``chat``, until ``undo()``.

    ``chat``: a handle of ``Reporter.chat``, or a function that gives the one a call belongs to.
    ``options``: messages, turns, count; see ``Observer``.
    """
    options.setdefault("provider", "anthropic")
    found, dialect = Observed(client, Observer(chat, **options)), MessagesDialect()
    for path in _PATHS:
        found.watch((*path, "create"), dialect)
        found.watch((*path, "parse"), dialect)
        found.watch((*path, "stream"), dialect, managed)
    return found


class MessagesDialect:
    """messages: cache reads and writes stand beside the input, not inside it."""

    def sent(self, given: Mapping[str, Any]) -> Sent:
        messages = given.get("messages")
        return Sent(
            model=given.get("model") if isinstance(given.get("model"), str) else None,
            max_output=whole(given.get("max_tokens")),
            messages=messages if isinstance(messages, (list, tuple)) else None,
            parts=message_parts,
        )

    def reply(self, result: Any) -> Reply:
        content = {"text_chars": 0, "tool_calls": 0, "thinking_chars": 0, "data": 0}
        for block in read(result, "content") or ():
            _count(str(read(block, "type") or ""), block, content)
        model, finish = read(result, "model"), read(result, "stop_reason")
        return Reply(usage_of(read(result, "usage")), content, finish, model)

    def gather(self) -> MessagesGather:
        return MessagesGather()


class MessagesGather:
    """Events: the start carries the input's usage, the delta before the end the output's."""

    def __init__(self) -> None:
        self.ended = False
        self._usage: dict[str, Any] = {}
        self._content = {"text_chars": 0, "tool_calls": 0, "thinking_chars": 0, "data": 0}
        self._reply = Reply()

    def add(self, event: Any) -> None:
        kind = read(event, "type")
        if kind == "message_start":
            message = read(event, "message")
            self._reply.model = read(message, "model")
            self._take(read(message, "usage"))
        elif kind == "content_block_start":
            block = read(event, "content_block")
            _count(str(read(block, "type") or ""), block, self._content)
        elif kind == "content_block_delta":
            delta = read(event, "delta")
            self._content["text_chars"] += text_chars(read(delta, "text"))
            self._content["thinking_chars"] += text_chars(read(delta, "thinking"))
        elif kind == "message_delta":
            self._reply.finish = read(read(event, "delta"), "stop_reason")
            self._take(read(event, "usage"))
        elif kind == "message_stop":
            self.ended = True

    def reply(self) -> Reply:
        self._reply.usage, self._reply.content = self._usage or None, self._content
        return self._reply

    def _take(self, usage: Any) -> None:
        self._usage.update(usage_of(usage) or {})


class _Snapshot:
    """What the library's own helper has put together of a stream so far."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.ended = False

    def add(self, event: Any) -> None:
        """The helper reads the events."""

    def reply(self) -> Reply:
        try:
            message = self._stream.current_message_snapshot
        except Exception:
            # Nothing came yet, which the helper asserts.
            return Reply()
        self.ended = read(message, "stop_reason") is not None
        return MessagesDialect().reply(message)


class Managed:
    """The ``stream`` helper's manager, sync or async: the call lasts as long as it is entered."""

    def __init__(self, manager: Any, call: Call) -> None:
        self._manager, self._call = manager, call
        self._stream: Any = None

    def __getattr__(self, name: str) -> Any:
        if name == "_manager":
            raise AttributeError(name)
        return getattr(self._manager, name)

    def __enter__(self) -> Any:
        try:
            self._stream = self._manager.__enter__()
        except BaseException as error:
            self._call.failed(error)
            raise
        return self._stream

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        self._over(error)
        return self._manager.__exit__(kind, error, trace)

    async def __aenter__(self) -> Any:
        try:
            self._stream = await self._manager.__aenter__()
        except BaseException as error:
            self._call.failed(error)
            raise
        return self._stream

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> Any:
        self._over(error)
        return await self._manager.__aexit__(kind, error, trace)

    def _over(self, error: BaseException | None) -> None:
        gather = _Snapshot(self._stream)
        self._call.quietly(gather.reply)
        by_provider = hasattr(error, "status_code") or hasattr(error, "request")
        if error is not None and by_provider and not gather.ended:
            # Another one is the app's own, after what it read.
            self._call.failed(error)
        self._call.gathered(gather)


def managed(method: Any, observer: Observer, dialect: Dialect) -> Any:
    """The ``stream`` helper: nothing is sent before its manager is entered."""

    @functools.wraps(method)
    def open_stream(*args: Any, **kwargs: Any) -> Any:
        manager = method(*args, **kwargs)
        enters = hasattr(manager, "__enter__") or hasattr(manager, "__aenter__")
        if not enters or inspect.isawaitable(manager):
            return manager
        call = observer.begin(dialect, kwargs)
        return manager if call is None else Managed(manager, call)

    return open_stream


def _count(kind: str, block: Any, content: dict[str, int]) -> None:
    if kind == "text":
        content["text_chars"] += text_chars(read(block, "text"))
    elif kind == "thinking":
        content["thinking_chars"] += text_chars(read(block, "thinking"))
    elif kind == "redacted_thinking":
        content["thinking_chars"] += text_chars(read(block, "data"))
    elif kind.endswith("tool_use"):
        content["tool_calls"] += 1
    elif kind.endswith("_result") or kind == "container_upload":
        content["data"] += 1


def usage_of(usage: Any) -> dict[str, Any] | None:
    """Only what is stated: the delta of a stream repeats some fields and leaves out others."""
    if usage is None:
        return None
    found: dict[str, Any] = {
        key: value
        for key, name in _USAGE.items()
        if (value := whole(read(usage, name))) is not None
    }
    passes = [_pass(entry) for entry in read(usage, "iterations") or ()]
    if passes:
        found["iterations"] = passes
    return {"dialect": "anthropic", **found} if found else None


def _pass(entry: Any) -> dict[str, Any]:
    counts = {key: whole(read(entry, name)) for key, name in _USAGE.items()}
    known = {key: value for key, value in counts.items() if value is not None}
    return {"type": str(read(entry, "type") or "message"), **known}
