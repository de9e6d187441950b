"""OpenAI's client: usage in its dialect, contents, failures, streams, messages, turns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ctxhealth.agents.openai_client import observe
from ctxhealth.client import Chat
from tests.agents.wrappers.conftest import kinds, only, told
from tests.agents.wrappers.doubles import (
    SHAPES,
    APITimeoutError,
    AsyncStream,
    BadRequest,
    Method,
    Stream,
    openai,
    resource,
    shaped,
)
from tests.client.server import Server

SAY = [{"role": "user", "content": "one two three"}]
EMPTY = {"text_chars": 0, "tool_calls": 0, "thinking_chars": 0, "data": 0}


def test_a_reply_is_told_with_its_usage_and_its_content(server: Server, chat: Chat) -> None:
    answer = shaped(SHAPES["chat"])
    client = openai(Method(answer))
    observe(client, chat)
    assert client.chat.completions.create(model="m", messages=SAY, max_tokens=9) is answer
    [sent] = only(server, chat, "request.sent")
    [replied] = only(server, chat, "model.replied")
    assert sent["max_output"] == 9
    assert replied["usage"] == {
        "dialect": "openai", "input": 3, "output": 2, "cache_read": 2, "total": 5,
    }  # fmt: skip
    assert replied["content"] == {**EMPTY, "text_chars": 11}
    assert (replied["finish"], replied["model"]) == ("stop", "m")
    assert (chat.facts["model"], chat.facts["provider"]) == ("m", "openai")


def test_a_stream_is_the_app_s_own_and_told_when_it_ended(server: Server, chat: Chat) -> None:
    chunks = [shaped(chunk) for chunk in SHAPES["chat_stream"]]
    client = openai(Method(Stream(chunks)))
    observe(client, chat)
    stream = client.chat.completions.create(model="m", messages=SAY, stream=True)
    assert stream.response == "the response"
    assert list(stream) == chunks
    [replied] = only(server, chat, "model.replied")
    assert replied["usage"] == {
        "dialect": "openai", "input": 3, "output": 4, "cache_read": 1, "total": 7,
    }  # fmt: skip
    assert (replied["content"]["text_chars"], replied["content"]["thinking_chars"]) == (13, 2)


@pytest.mark.parametrize("leave", ["close", "exit", "forget"])
def test_a_stream_left_early_has_no_usage_and_is_no_empty_reply(
    leave: str, server: Server, chat: Chat
) -> None:
    source = Stream([shaped(chunk) for chunk in SHAPES["chat_stream"]])
    client = openai(Method(source))
    observe(client, chat)
    stream = client.chat.completions.create(model="m", messages=SAY, stream=True)
    next(stream)
    if leave == "close":
        stream.close()
    elif leave == "exit":
        with stream:
            pass
    del stream
    [replied] = only(server, chat, "model.replied")
    assert "usage" not in replied and "content" not in replied
    assert only(server, chat, "reply.empty") == []
    assert source.closed is (leave != "forget")


def test_a_stream_that_breaks_is_a_failed_call(server: Server, chat: Chat) -> None:
    broken = Stream([shaped(SHAPES["chat_stream"][0])], APITimeoutError("timed out"))
    client = openai(Method(broken))
    observe(client, chat)
    with pytest.raises(APITimeoutError):
        list(client.chat.completions.create(model="m", messages=SAY, stream=True))
    [failed] = only(server, chat, "model.failed")
    assert (failed["error"], failed["detail"]) == ("timeout", "timed out")
    assert only(server, chat, "model.replied") == []


def test_an_overflow_keeps_status_code_and_text(server: Server, chat: Chat) -> None:
    said = "This model's maximum context length is 1000 tokens."
    client = openai(Method(BadRequest({"error": {"message": said}}, "context_length_exceeded")))
    observe(client, chat)
    with pytest.raises(BadRequest):
        client.chat.completions.create(model="m", messages=SAY)
    [failed] = only(server, chat, "model.failed")
    assert (failed["error"], failed["status"]) == ("invalid", 400)
    assert (failed["code"], failed["detail"]) == ("context_length_exceeded", said)


def test_empty_replies_are_counted_until_one_says_something(server: Server, chat: Chat) -> None:
    nothing = shaped(SHAPES["chat"])
    nothing.choices[0].message.content = " "
    client = openai(Method(nothing, nothing, shaped(SHAPES["chat"]), nothing))
    observe(client, chat)
    for _ in range(4):
        client.chat.completions.create(model="m", messages=SAY)
    empty = only(server, chat, "reply.empty")
    assert [(event["n"], event["prompt"], event["completion"]) for event in empty] == [
        (1, 3, 2), (2, 3, 2), (1, 3, 2),
    ]  # fmt: skip


def test_an_async_client_is_told_alike_and_a_cancelled_call_is_no_reply(
    server: Server, chat: Chat
) -> None:
    async def whole(**given: Any) -> Any:
        if given.get("stream"):
            return AsyncStream([shaped(chunk) for chunk in SHAPES["chat_stream"]])
        if given["model"] == "slow":
            await asyncio.sleep(60)
        return shaped(SHAPES["chat"])

    client = openai(whole)
    observe(client, chat)
    create = client.chat.completions.create

    async def run() -> str:
        await create(model="m", messages=SAY)
        stream = await create(model="m", messages=SAY, stream=True)
        deltas = [chunk.choices[0].delta async for chunk in stream if chunk.choices]
        text = "".join(getattr(delta, "content", "") for delta in deltas)
        task = asyncio.ensure_future(create(model="slow", messages=SAY))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return text

    assert asyncio.run(run()) == "four five six"
    assert [event["usage"]["input"] for event in only(server, chat, "model.replied")] == [3, 3]
    assert [event["error"] for event in only(server, chat, "model.failed")] == ["cancelled"]


def test_responses_are_told_and_what_the_provider_remembers_is_a_delta(
    server: Server, chat: Chat
) -> None:
    whole, events = shaped(SHAPES["response"]), [shaped(e) for e in SHAPES["response_stream"]]
    client = openai(Method(None), Method(whole, whole, Stream(events)))
    observe(client, chat)
    client.responses.create(model="m", input="x", max_output_tokens=7)
    client.responses.create(model="m", input="y", previous_response_id="r1")
    list(client.responses.create(model="m", input="x", stream=True))
    sent = only(server, chat, "request.sent")
    assert [event.get("delta") for event in sent] == [None, True, None]
    assert sent[0]["max_output"] == 7
    replied = only(server, chat, "model.replied")
    assert [event["usage"]["input"] for event in replied] == [1, 1, 1]
    assert [event["content"]["text_chars"] for event in replied] == [11, 11, 5]


def test_messages_are_told_once_and_a_cut_tells_the_order_anew(server: Server, chat: Chat) -> None:
    called = SHAPES["chat_call"]["choices"][0]["message"]
    call = called["tool_calls"][0]["id"]
    messages = [
        {"role": "system", "content": "Be brief."}, *SAY, called,
        {"role": "tool", "tool_call_id": call, "content": "found"},
    ]  # fmt: skip
    client = openai(Method(shaped(SHAPES["chat"])))
    observe(client, chat)
    create = client.chat.completions.create
    create(model="m", messages=messages[:2])
    create(model="m", messages=messages)
    create(model="m", messages=[messages[0], *messages[2:]])
    added = only(server, chat, "message.added")
    assert [(e["role"], e["kind"], e.get("calls"), e.get("answers")) for e in added] == [
        ("system", "text", None, None), ("user", "text", None, None),
        ("assistant", "tool_call", [call], None), ("tool", "tool_result", None, [call]),
    ]  # fmt: skip
    [snapshot] = only(server, chat, "history.snapshot")
    ids = [event["id"] for event in added]
    assert [entry["id"] for entry in snapshot["order"]] == [ids[0], *ids[2:]]


def test_a_message_that_was_changed_in_place_is_a_new_one(server: Server, chat: Chat) -> None:
    messages: list[Any] = [*SAY, {"role": "user", "content": "long " * 50}]
    client = openai(Method(shaped(SHAPES["chat"])))
    observe(client, chat)
    client.chat.completions.create(model="m", messages=messages)
    messages[1]["content"] = "short"
    client.chat.completions.create(model="m", messages=messages)
    assert [event["excerpt"] for event in only(server, chat, "message.added")][-1] == "short"
    assert len(only(server, chat, "history.snapshot")) == 1


def test_turns_begin_at_the_user_s_words_and_end_at_an_answer(server: Server, chat: Chat) -> None:
    failure = BadRequest({"error": {"message": "no"}})
    client = openai(
        Method(shaped(SHAPES["chat_call"]), shaped(SHAPES["chat"]), failure, shaped(SHAPES["chat"]))
    )
    observe(client, chat, turns=True)
    create = client.chat.completions.create
    create(model="m", messages=SAY)
    create(model="m", messages=[*SAY, {"role": "assistant", "content": "hm"}])
    with pytest.raises(BadRequest):
        create(model="m", messages=[*SAY, {"role": "user", "content": "again"}])
    create(model="m", messages=[*SAY, {"role": "user", "content": "and again"}])
    turns = [event for event in told(server, chat) if event["type"].startswith("turn.")]
    assert [(event["type"], event.get("outcome")) for event in turns] == [
        ("turn.started", None), ("turn.ended", "answered"), ("turn.started", None),
        ("turn.ended", "error"), ("turn.started", None), ("turn.ended", "answered"),
    ]  # fmt: skip


def test_calls_go_to_the_chat_that_they_belong_to(server: Server, chat: Chat) -> None:
    other = chat.reporter.chat("other")
    now: list[Chat | None] = [chat]
    client = openai(Method(shaped(SHAPES["chat"])))
    observe(client, lambda: now[0], count=lambda given: 7)
    for found in (chat, other, None):
        now[0] = found
        client.chat.completions.create(model="m", messages=SAY)
    chat.reporter.flush(10)
    sent = server.events("request.sent")
    assert [(event["chat"], event["local"]) for event in sent] == [("c", 7), ("other", 7)]


def test_undo_leaves_the_client_as_it_was(server: Server, chat: Chat) -> None:
    client = openai(Method(shaped(SHAPES["chat"])))
    before = client.chat.completions.create
    observed = observe(client, chat)
    assert client.chat.completions.create is not before
    observed.undo()
    assert client.chat.completions.create is before
    assert vars(client.chat.completions) == {}
    client.chat.completions.create(model="m", messages=SAY)
    assert kinds(server, chat) == []


def test_a_client_that_is_observed_twice_tells_each_call_once(server: Server, chat: Chat) -> None:
    client = openai(Method(shaped(SHAPES["chat"])))
    first = observe(client, chat)
    second = observe(client, chat)
    client.chat.completions.create(model="m", messages=SAY)
    assert len(only(server, chat, "model.replied")) == 1
    second.undo()
    first.undo()
    client.chat.completions.create(model="m", messages=SAY)
    assert len(only(server, chat, "model.replied")) == 1


def test_what_a_version_does_not_have_is_named_and_the_rest_observed(chat: Chat) -> None:
    client = openai(Method(shaped(SHAPES["chat"])))
    client.chat.completions = resource(create=Method(None))
    observed = observe(client, chat)
    assert observed.unsupported == [
        "chat.completions.parse", "responses.create", "responses.parse",
    ]  # fmt: skip
