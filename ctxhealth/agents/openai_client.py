"""An OpenAI client, sync or async, whose calls are reported: ``observe(OpenAI(), chat)``.

``chat.completions`` (create, parse, stream) and ``responses`` (create, parse), whole or streamed.
The request is sent as the app made it: a stream tells its usage only where the app asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ctxhealth.agents.following import read
from ctxhealth.agents.observed import (
    ChatSource,
    Observer,
    Reply,
    Sent,
    text_chars,
    whole,
)
from ctxhealth.agents.openai_messages import chat_parts, response_parts
from ctxhealth.agents.patched import Observed

_ROLES = {"developer": "system", "function": "tool"}


def observe(client: Any, chat: ChatSource, **options: Any) -> Observed:
    """Report the calls of ``client`` as those of ``chat``, until ``undo()``.

    ``chat``: a handle of ``Reporter.chat``, or a function that gives the one a call belongs to.
    ``options``: messages, turns, count; see ``Observer``.
    """
    options.setdefault("provider", _provider(client))
    found = Observed(client, Observer(chat, **options))
    for name in ("create", "parse"):
        found.watch(("chat", "completions", name), ChatDialect())
    for name in ("create", "parse"):
        found.watch(("responses", name), ResponsesDialect())
    return found


def _provider(client: Any) -> str | None:
    """The host that is called, by its name: ``openai`` for OpenAI's own."""
    host = urlsplit(str(getattr(client, "base_url", "") or "")).hostname
    return "openai" if host == "api.openai.com" else host


class ChatDialect:
    """chat.completions."""

    def sent(self, given: Mapping[str, Any]) -> Sent:
        return Sent(
            model=_name(given.get("model")),
            max_output=whole(given.get("max_completion_tokens")) or whole(given.get("max_tokens")),
            messages=_listed(given.get("messages")),
            parts=chat_parts,
        )

    def reply(self, result: Any) -> Reply:
        choice = next(iter(read(result, "choices") or ()), None)
        if choice is None:
            return Reply(usage=chat_usage(read(result, "usage")), model=_name(_model(result)))
        message = read(choice, "message")
        content = {
            "text_chars": text_chars(read(message, "content"))
            + text_chars(read(message, "refusal")),
            "tool_calls": len(read(message, "tool_calls") or ())
            or int(read(message, "function_call") is not None),
            "thinking_chars": text_chars(read(message, "reasoning_content"))
            or text_chars(read(message, "reasoning")),
            "data": int(read(message, "audio") is not None),
        }
        finish = _name(read(choice, "finish_reason"))
        return Reply(chat_usage(read(result, "usage")), content, finish, _name(_model(result)))

    def gather(self) -> ChatGather:
        return ChatGather()


class ChatGather:
    """Chunks; the last one may carry the usage, behind the one with the finish reason."""

    def __init__(self) -> None:
        self.ended = False
        self._text = self._thinking = self._data = 0
        self._calls: set[Any] = set()
        self._reply = Reply()

    def add(self, event: Any) -> None:
        self._reply.model = self._reply.model or _name(_model(event))
        usage = chat_usage(read(event, "usage"))
        self._reply.usage = usage or self._reply.usage
        for choice in read(event, "choices") or ():
            if read(choice, "index") not in (None, 0):
                continue
            self._delta(read(choice, "delta"))
            finish = _name(read(choice, "finish_reason"))
            if finish:
                self.ended, self._reply.finish = True, finish

    def reply(self) -> Reply:
        self._reply.content = {
            "text_chars": self._text,
            "tool_calls": len(self._calls),
            "thinking_chars": self._thinking,
            "data": self._data,
        }
        return self._reply

    def _delta(self, delta: Any) -> None:
        self._text += text_chars(read(delta, "content")) + text_chars(read(delta, "refusal"))
        thought = read(delta, "reasoning_content") or read(delta, "reasoning")
        self._thinking += text_chars(thought)
        self._data = self._data or int(read(delta, "audio") is not None)
        for number, call in enumerate(read(delta, "tool_calls") or ()):
            index = read(call, "index")
            self._calls.add(number if index is None else index)


class ResponsesDialect:
    """responses."""

    def sent(self, given: Mapping[str, Any]) -> Sent:
        held = given.get("previous_response_id") or given.get("conversation")
        return Sent(
            model=_name(given.get("model")),
            max_output=whole(given.get("max_output_tokens")),
            delta=True if held and isinstance(held, (str, Mapping)) else None,
            messages=_listed(given.get("input")),
            parts=response_parts,
        )

    def reply(self, result: Any) -> Reply:
        content = {"text_chars": 0, "tool_calls": 0, "thinking_chars": 0, "data": 0}
        for item in read(result, "output") or ():
            _count(str(read(item, "type") or ""), item, content)
        details = read(result, "incomplete_details")
        finish = _name(read(details, "reason")) or _name(read(result, "status"))
        return Reply(response_usage(read(result, "usage")), content, finish, _name(_model(result)))

    def gather(self) -> ResponsesGather:
        return ResponsesGather()


class ResponsesGather:
    """Events; the last one carries the whole response."""

    _LAST = ("response.completed", "response.incomplete", "response.failed")

    def __init__(self) -> None:
        self.ended = False
        self._text = 0
        self._whole: Any = None

    def add(self, event: Any) -> None:
        kind = str(read(event, "type") or "")
        if kind == "response.output_text.delta":
            self._text += text_chars(read(event, "delta"))
        elif kind in self._LAST:
            self.ended, self._whole = True, read(event, "response")

    def reply(self) -> Reply:
        if self._whole is not None:
            return ResponsesDialect().reply(self._whole)
        return Reply(content={"text_chars": self._text})


def _count(kind: str, item: Any, content: dict[str, int]) -> None:
    if kind == "message":
        for part in read(item, "content") or ():
            said = text_chars(read(part, "text")) + text_chars(read(part, "refusal"))
            content["text_chars"] += said
    elif kind == "reasoning":
        parts = [*(read(item, "summary") or ()), *(read(item, "content") or ())]
        content["thinking_chars"] += sum(text_chars(read(part, "text")) for part in parts)
    elif kind == "image_generation_call":
        content["data"] += 1
    elif kind.endswith("_call"):
        content["tool_calls"] += 1


def chat_usage(usage: Any) -> dict[str, Any] | None:
    return _usage(usage, "prompt_tokens", "completion_tokens", "prompt", "completion")


def response_usage(usage: Any) -> dict[str, Any] | None:
    return _usage(usage, "input_tokens", "output_tokens", "input", "output")


def _usage(usage: Any, prompt: str, output: str, ins: str, outs: str) -> dict[str, Any] | None:
    """Cached tokens are inside the prompt, in this dialect."""
    if usage is None or whole(read(usage, prompt)) is None:
        return None
    into, out = read(usage, f"{ins}_tokens_details"), read(usage, f"{outs}_tokens_details")
    found = {
        "input": whole(read(usage, prompt)),
        "output": whole(read(usage, output)),
        "cache_read": whole(read(into, "cached_tokens")),
        "cache_write": whole(read(into, "cache_write_tokens")),
        "reasoning": whole(read(out, "reasoning_tokens")),
        "total": whole(read(usage, "total_tokens")),
    }
    kept = {key: value for key, value in found.items() if value is not None}
    return {"dialect": "openai", **kept}


def _listed(given: Any) -> Sequence[Any] | None:
    """None where the messages are not at hand as a list; a text alone is the user's."""
    if isinstance(given, str):
        return [given]
    return given if isinstance(given, (list, tuple)) else None


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _model(result: Any) -> Any:
    return read(result, "model")
