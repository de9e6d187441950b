"""The fake provider speaks Anthropic's messages as the published package reads them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from tests.agents.provider import Answer, Provider, Refusal
from tests.agents.wrappers.doubles import SHAPES

ASK = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "one two three"}]}


def ask(provider: Provider, **more: Any) -> tuple[int, str]:
    body = json.dumps({**ASK, **more}).encode()
    try:
        with urllib.request.urlopen(f"{provider.url}/messages", body, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_whole_answer_counts_its_cache_beside_the_input() -> None:
    with Provider() as provider:
        provider.script("m", Answer("well then", cached=1, thinking="let me see"))
        status, said = ask(provider)
    answer = json.loads(said)
    assert status == 200
    assert answer["usage"] == {
        "input_tokens": 2, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 0,
        "output_tokens": 2,
    }  # fmt: skip
    kinds = [block["type"] for block in answer["content"]]
    assert kinds == [block["type"] for block in SHAPES["message"]["content"]]


def test_a_stream_has_the_events_that_the_package_was_seen_to_read() -> None:
    with Provider() as provider:
        provider.script("m", Answer("bye now", calls=(("look", {}),)))
        said = ask(provider, stream=True)[1]
    lines = [json.loads(line[6:]) for line in said.splitlines() if line.startswith("data: ")]
    assert [line["type"] for line in lines] == [e["type"] for e in SHAPES["message_stream"]]


def test_a_refusal_is_in_its_own_shape() -> None:
    with Provider() as provider:
        provider.script("m", Refusal(400, "", "prompt is too long: 9 tokens > 8 maximum"))
        status, said = ask(provider)
    assert status == 400
    assert json.loads(said) == {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "prompt is too long: 9 tokens > 8 maximum",
        },
    }
