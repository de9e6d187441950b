"""The fake provider speaks both dialects, follows its script and tells usage truthfully."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.agents.provider import (
    Provider,
    count_tokens,
    empty,
    out_of_quota,
    overflow,
    rate_limited,
    says,
)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(responses=True) as made:
        yield made


def ask(provider: Provider, path: str = "chat/completions", **body: Any) -> tuple[int, str]:
    body.setdefault("model", "m")
    request = urllib.request.Request(f"{provider.url}/{path}", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def chat(provider: Provider, text: str = "how do you do", **body: Any) -> tuple[int, str]:
    return ask(provider, messages=[{"role": "user", "content": text}], **body)


def test_a_script_is_followed_and_its_last_step_stays(provider: Provider) -> None:
    provider.script("m", empty(), out_of_quota(), rate_limited(), says("fine"))
    assert [chat(provider)[0] for _ in range(5)] == [200, 402, 429, 200, 200]
    assert [asked.answer for asked in provider.asked] == ["", None, None, "fine", "fine"]


def test_usage_is_what_was_sent_and_said(provider: Provider) -> None:
    provider.script("m", says("one two three"))
    usage = json.loads(chat(provider)[1])["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (4, 3)
    assert provider.asked[0].usage == usage


def test_a_stream_tells_its_usage_only_where_it_was_asked_to(provider: Provider) -> None:
    provider.script("m", says("one two three"))
    chat(provider, stream=True)
    chat(provider, stream=True, stream_options={"include_usage": True})
    without, with_usage = provider.asked
    assert without.usage is None
    assert with_usage.usage is not None
    assert with_usage.usage["prompt_tokens"] == 4


def test_a_stream_holds_the_whole_text(provider: Provider) -> None:
    provider.script("m", says("one  two\nthree"))
    lines = [row[6:] for row in chat(provider, stream=True)[1].splitlines() if row[:6] == "data: "]
    assert lines.pop() == "[DONE]"
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines]
    assert "".join(delta.get("content", "") for delta in deltas) == "one  two\nthree"


def test_a_prompt_over_the_window_is_refused_with_both_numbers(provider: Provider) -> None:
    provider.script("m", says("never"))
    provider.windows["m"] = 3
    status, text = chat(provider)
    error = json.loads(text)["error"]
    assert (status, error["code"]) == (400, "context_length_exceeded")
    assert "3 tokens" in error["message"] and "4 tokens" in error["message"]


def test_an_overflow_may_state_no_numbers(provider: Provider) -> None:
    provider.script("m", overflow())
    assert not any(sign.isdigit() for sign in json.loads(chat(provider)[1])["error"]["message"])


def test_a_later_response_bills_what_the_provider_holds(provider: Provider) -> None:
    provider.script("m", says("one two three"))
    first = json.loads(ask(provider, "responses", input="a b")[1])
    second = json.loads(ask(provider, "responses", input="c", previous_response_id=first["id"])[1])
    assert first["usage"]["input_tokens"] == 2
    assert second["usage"]["input_tokens"] == 2 + 3 + 1


def test_a_provider_without_responses_answers_not_found() -> None:
    with Provider() as plain:
        plain.script("m", says("x"))
        assert ask(plain, "responses", input="a")[0] == 404
        assert chat(plain)[0] == 200


def test_calls_are_answered_in_both_dialects(provider: Provider) -> None:
    provider.script("m", says("", calls=(("look", {"at": "it"}),)))
    choice = json.loads(chat(provider)[1])["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "look"
    output = json.loads(ask(provider, "responses", input="a")[1])["output"]
    assert [(item["type"], item["name"]) for item in output] == [("function_call", "look")]


def test_ids_and_roles_are_no_tokens() -> None:
    assert count_tokens([{"role": "user", "id": "x", "content": "a b"}]) == 2
