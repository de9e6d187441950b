"""Anthropic's client: cache beside the input, blocks, both kinds of streams."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ctxhealth.agents.anthropic_client import observe
from ctxhealth.client import Chat
from tests.agents.wrappers.conftest import only
from tests.agents.wrappers.doubles import SHAPES, BadRequest, Method, Stream, anthropic, shaped
from tests.client.server import Server

SAY = [{"role": "user", "content": "one two three"}]
ASK: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": SAY}


class Manager:
    """The ``stream`` helper's manager; it sends when it is entered."""

    def __init__(self, snapshot: Any, error: Exception | None = None) -> None:
        self._snapshot, self._error = snapshot, error
        self.left = False

    def __enter__(self) -> Any:
        if self._error is not None:
            raise self._error
        return SimpleNamespace(current_message_snapshot=self._snapshot)

    def __exit__(self, *_: Any) -> None:
        self.left = True

    async def __aenter__(self) -> Any:
        return self.__enter__()

    async def __aexit__(self, *_: Any) -> None:
        self.left = True


def test_a_reply_is_told_in_anthropic_s_dialect(server: Server, chat: Chat) -> None:
    client = anthropic(Method(shaped(SHAPES["message"])))
    observe(client, chat)
    client.messages.create(**ASK)
    [replied] = only(server, chat, "model.replied")
    assert replied["usage"] == {
        "dialect": "anthropic", "input": 2, "output": 2, "cache_read": 1, "cache_write": 0,
    }  # fmt: skip
    assert (replied["content"]["text_chars"], replied["content"]["thinking_chars"]) == (9, 10)
    assert replied["finish"] == "end_turn"


def test_a_stream_s_usage_is_that_of_its_start_and_its_end(server: Server, chat: Chat) -> None:
    events = [shaped(event) for event in SHAPES["message_stream"]]
    client = anthropic(Method(Stream(events)))
    observe(client, chat)
    assert list(client.messages.create(stream=True, **ASK)) == events
    [replied] = only(server, chat, "model.replied")
    assert (replied["usage"]["input"], replied["usage"]["output"]) == (3, 2)
    assert (replied["content"]["text_chars"], replied["content"]["tool_calls"]) == (7, 1)
    assert replied["finish"] == "tool_use"


def test_a_stream_cut_before_its_end_has_no_usage(server: Server, chat: Chat) -> None:
    events = [shaped(event) for event in SHAPES["message_stream"]]
    client = anthropic(Method(Stream(events[:4])))
    observe(client, chat)
    list(client.messages.create(stream=True, **ASK))
    [replied] = only(server, chat, "model.replied")
    assert "usage" not in replied


def test_passes_of_one_reply_are_handed_on(server: Server, chat: Chat) -> None:
    message = shaped(SHAPES["message"])
    message.usage.iterations = [
        SimpleNamespace(type="compaction", input_tokens=90, output_tokens=9),
        SimpleNamespace(type="message", input_tokens=20, cache_read_input_tokens=5),
    ]
    client = anthropic(Method(message))
    observe(client, chat)
    client.messages.create(**ASK)
    [replied] = only(server, chat, "model.replied")
    assert replied["usage"]["iterations"] == [
        {"type": "compaction", "input": 90, "output": 9},
        {"type": "message", "input": 20, "cache_read": 5},
    ]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_stream_helper_is_a_call_from_entering_to_leaving(
    how: str, server: Server, chat: Chat
) -> None:
    manager = Manager(shaped(SHAPES["message"]))
    client = anthropic(Method(None), stream=Method(manager))
    observe(client, chat)

    async def run() -> None:
        async with client.messages.stream(**ASK) as stream:
            assert stream.current_message_snapshot.model == "m"

    if how == "async":
        asyncio.run(run())
    else:
        with client.messages.stream(**ASK) as stream:
            assert stream.current_message_snapshot.model == "m"
    [replied] = only(server, chat, "model.replied")
    assert replied["usage"]["input"] == 2
    assert manager.left


def test_the_stream_helper_left_early_has_no_usage(server: Server, chat: Chat) -> None:
    message = shaped(SHAPES["message"])
    message.stop_reason = None
    client = anthropic(Method(None), stream=Method(Manager(message)))
    observe(client, chat)
    with client.messages.stream(**ASK):
        pass
    [replied] = only(server, chat, "model.replied")
    assert "usage" not in replied
    assert replied["content"]["text_chars"] == 9


def test_an_overflow_keeps_the_provider_s_words(server: Server, chat: Chat) -> None:
    said = "prompt is too long: 213462 tokens > 200000 maximum"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    error = BadRequest(body)
    client = anthropic(Method(error), stream=Method(Manager(None, error)))
    observe(client, chat)
    with pytest.raises(BadRequest):
        client.messages.create(**ASK)
    with pytest.raises(BadRequest), client.messages.stream(**ASK):
        pass
    failed = only(server, chat, "model.failed")
    assert [(e["error"], e["code"], e["detail"]) for e in failed] == [
        ("invalid", "invalid_request_error", said)
    ] * 2


def test_results_in_the_user_s_message_answer_their_calls(server: Server, chat: Chat) -> None:
    client = anthropic(Method(shaped(SHAPES["message"])))
    observe(client, chat, turns=True)
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "it"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"text": "found"}]}
    messages = [
        *SAY, {"role": "assistant", "content": [{"type": "text", "text": "hm"}, call]},
        {"role": "user", "content": [result]},
    ]  # fmt: skip
    client.messages.create(**{**ASK, "messages": messages})
    added = only(server, chat, "message.added")
    assert [(e["role"], e["kind"], e.get("calls"), e.get("answers")) for e in added] == [
        ("user", "text", None, None), ("assistant", "text", None, None),
        ("assistant", "tool_call", ["t1"], None), ("tool", "tool_result", None, ["t1"]),
    ]  # fmt: skip
    assert len(only(server, chat, "turn.started")) == 1
