"""Anthropic's messages as the fake provider speaks them: cache reads stand beside the input."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from tests.agents.dialects import Answer, Event, count_tokens

_numbers = count(1)
_FINISH = {"stop": "end_turn", "length": "max_tokens"}


def refusal(kind: str, message: str) -> dict[str, Any]:
    """An error in Anthropic's shape."""
    return {"type": "error", "error": {"type": kind, "message": message}}


class Messages:
    """/v1/messages."""

    def prompt(self, body: dict[str, Any]) -> int:
        return sum(count_tokens(body.get(part)) for part in ("system", "messages", "tools"))

    def whole(self, body: dict[str, Any], prompt: int, answer: Answer) -> dict[str, Any]:
        return {
            **_envelope(body),
            "content": _blocks(answer),
            "stop_reason": _finish(answer),
            "usage": {**_input(prompt, answer), "output_tokens": count_tokens(answer.text)},
        }

    def events(self, body: dict[str, Any], prompt: int, answer: Answer) -> Iterator[Event]:
        usage = {**_input(prompt, answer), "output_tokens": 1}
        message = {**_envelope(body), "content": [], "stop_reason": None, "usage": usage}
        yield _event("message_start", message=message)
        for index, block in enumerate(_blocks(answer)):
            yield from _block_events(index, block)
        yield _event(
            "message_delta",
            delta={"stop_reason": _finish(answer), "stop_sequence": None},
            usage={"output_tokens": count_tokens(answer.text)},
        )
        yield _event("message_stop")


def _event(kind: str, **fields: Any) -> Event:
    return kind, {"type": kind, **fields}


def _envelope(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{next(_numbers)}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "stop_sequence": None,
    }


def _input(prompt: int, answer: Answer) -> dict[str, Any]:
    return {
        "input_tokens": prompt - answer.cached,
        "cache_read_input_tokens": answer.cached,
        "cache_creation_input_tokens": 0,
    }


def _finish(answer: Answer) -> str:
    return "tool_use" if answer.calls else _FINISH.get(answer.finish, answer.finish)


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.thinking:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": "s"})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for name, arguments in answer.calls:
        call = f"toolu_{next(_numbers)}"
        blocks.append({"type": "tool_use", "id": call, "name": name, "input": arguments})
    return blocks


def _block_events(index: int, block: dict[str, Any]) -> Iterator[Event]:
    kind = block["type"]
    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}
    begun = {**block, **empty.get(kind, {"input": {}})}
    yield _event("content_block_start", index=index, content_block=begun)
    delta = {"type": "text_delta", "text": block.get("text")}
    if kind == "thinking":
        delta = {"type": "thinking_delta", "thinking": block["thinking"]}
    elif kind == "tool_use":
        delta = {"type": "input_json_delta", "partial_json": "{}"}
    yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)
