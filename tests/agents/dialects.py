"""OpenAI's two dialects as the fake provider speaks them: whole answers, streams, usage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

Event = tuple[str, Any]
_WORDS = re.compile(r"\w+|[^\w\s]")
_numbers = count(1)


@dataclass(frozen=True)
class Answer:
    """What the model says. ``calls``: (name, arguments) of tool calls."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    thinking: str = ""
    finish: str = "stop"
    usage: bool = True
    cached: int = 0


def says(text: str, **fields: Any) -> Answer:
    return Answer(text, **fields)


def count_tokens(value: Any) -> int:
    """Words and signs of all texts inside ``value``: the fake models' own tokenizer."""
    if isinstance(value, str):
        return len(_WORDS.findall(value))
    if isinstance(value, dict):
        return sum(count_tokens(part) for key, part in value.items() if key not in _NOT_READ)
    if isinstance(value, list):
        return sum(map(count_tokens, value))
    return 0


_NOT_READ = ("role", "type", "id", "status", "object", "tool_call_id", "call_id")


class Dialect(Protocol):
    def prompt(self, body: dict[str, Any]) -> int: ...
    def whole(self, body: dict[str, Any], prompt: int, answer: Answer) -> dict[str, Any]: ...
    def events(self, body: dict[str, Any], prompt: int, answer: Answer) -> Iterator[Event]: ...


def usage_in(data: Any) -> dict[str, Any] | None:
    """The usage that an event carries, if any."""
    if not isinstance(data, dict):
        return None
    found = data.get("usage") or (data.get("response") or {}).get("usage")
    return found if isinstance(found, dict) else None


def embeddings(body: dict[str, Any]) -> dict[str, Any]:
    given = body.get("input")
    texts = given if isinstance(given, list) else [given]
    rows = [
        {"object": "embedding", "index": number, "embedding": [float(len(str(text)) % 7)] * 8}
        for number, text in enumerate(texts)
    ]
    used = count_tokens(texts)
    usage = {"prompt_tokens": used, "total_tokens": used}
    return {"object": "list", "data": rows, "model": body.get("model"), "usage": usage}


@dataclass(frozen=True)
class ChatCompletions:
    """/v1/chat/completions."""

    stream_usage: str = "asked"

    def prompt(self, body: dict[str, Any]) -> int:
        return count_tokens(body.get("messages")) + count_tokens(body.get("tools"))

    def whole(self, body: dict[str, Any], prompt: int, answer: Answer) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.calls:
            message["tool_calls"] = [_call(number, *call) for number, call in _numbered(answer)]
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
        whole = _envelope(body, "chat.completion", [choice])
        return {**whole, "usage": _chat_usage(prompt, answer)} if answer.usage else whole

    def events(self, body: dict[str, Any], prompt: int, answer: Answer) -> Iterator[Event]:
        def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return "", _envelope(body, "chat.completion.chunk", [choice])

        yield chunk({"role": "assistant", "content": ""})
        if answer.thinking:
            yield chunk({"reasoning_content": answer.thinking})
        for piece in _pieces(answer.text):
            yield chunk({"content": piece})
        for number, call in _numbered(answer):
            yield chunk({"tool_calls": [{"index": number, **_call(number, *call)}]})
        yield chunk({}, _finish(answer))
        if answer.usage and self._tells_usage(body):
            last = _envelope(body, "chat.completion.chunk", [])
            yield "", {**last, "usage": _chat_usage(prompt, answer)}
        yield "", "[DONE]"

    def _tells_usage(self, body: dict[str, Any]) -> bool:
        asked = bool((body.get("stream_options") or {}).get("include_usage"))
        return self.stream_usage == "always" or (self.stream_usage == "asked" and asked)


@dataclass(frozen=True)
class Responses:
    """/v1/responses. ``talks``: what the provider holds behind each ``previous_response_id``."""

    talks: dict[str, list[Any]] = field(default_factory=dict)

    def prompt(self, body: dict[str, Any]) -> int:
        """The provider bills what it holds as well as what was sent."""
        held = self.talks.get(str(body.get("previous_response_id")), [])
        parts = [body.get("instructions"), body.get("tools"), held, _inputs(body)]
        return sum(map(count_tokens, parts))

    def whole(self, body: dict[str, Any], prompt: int, answer: Answer) -> dict[str, Any]:
        name = f"resp_{next(_numbers)}"
        output = _output(answer)
        held = self.talks.get(str(body.get("previous_response_id")), [])
        self.talks[name] = [*held, *_inputs(body), *output]
        whole: dict[str, Any] = {
            "id": name, "object": "response", "created_at": 1_790_000_000, "status": "completed",
            "model": body.get("model"), "output": output, "error": None, "tools": [],
            "incomplete_details": None, "instructions": body.get("instructions"), "metadata": {},
            "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "top_p": 1.0,
            "previous_response_id": body.get("previous_response_id"),
        }  # fmt: skip
        return {**whole, "usage": _responses_usage(prompt, answer)} if answer.usage else whole

    def events(self, body: dict[str, Any], prompt: int, answer: Answer) -> Iterator[Event]:
        whole = self.whole(body, prompt, answer)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        numbers = count()

        def event(kind: str, **fields: Any) -> Event:
            return kind, {"type": kind, "sequence_number": next(numbers), **fields}

        yield event("response.created", response=begun)
        for index, item in enumerate(whole["output"]):
            yield event("response.output_item.added", output_index=index, item=item)
            if item["type"] == "message":
                where = {"item_id": item["id"], "output_index": index, "content_index": 0}
                for piece in _pieces(answer.text):
                    yield event("response.output_text.delta", delta=piece, logprobs=[], **where)
                yield event("response.output_text.done", text=answer.text, logprobs=[], **where)
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=whole)


def _inputs(body: dict[str, Any]) -> list[Any]:
    given = body.get("input")
    return given if isinstance(given, list) else [given]


def _output(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [
        {
            "id": f"fc_{next(_numbers)}", "type": "function_call", "status": "completed",
            "call_id": f"call_{next(_numbers)}", "name": name, "arguments": json.dumps(arguments),
        }
        for name, arguments in answer.calls
    ]  # fmt: skip
    if answer.text or not items:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        items.insert(0, {
            "id": f"msg_{next(_numbers)}", "type": "message", "role": "assistant",
            "status": "completed", "content": [part],
        })  # fmt: skip
    return items


def _envelope(body: dict[str, Any], kind: str, choices: list[Any]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{next(_numbers)}", "object": kind, "created": 1_790_000_000,
        "model": body.get("model"), "choices": choices,
    }  # fmt: skip


def _numbered(answer: Answer) -> Iterator[tuple[int, tuple[str, dict[str, Any]]]]:
    return enumerate(answer.calls).__iter__()


def _call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"call_{next(_numbers)}_{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.calls and answer.finish == "stop" else answer.finish


def _pieces(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def _written(answer: Answer) -> int:
    return count_tokens([answer.text, answer.thinking]) + sum(
        count_tokens(json.dumps(arguments)) + 1 for _, arguments in answer.calls
    )


def _chat_usage(prompt: int, answer: Answer) -> dict[str, Any]:
    wrote = _written(answer)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": wrote,
        "total_tokens": prompt + wrote,
        "prompt_tokens_details": {"cached_tokens": min(answer.cached, prompt)},
    }


def _responses_usage(prompt: int, answer: Answer) -> dict[str, Any]:
    wrote = _written(answer)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": min(answer.cached, prompt)},
        "output_tokens": wrote,
        "output_tokens_details": {"reasoning_tokens": count_tokens(answer.thinking)},
        "total_tokens": prompt + wrote,
    }
