"""The published packages in an environment of their own, against the fake provider.

The numbers reported are held against the provider's own, and against what the app itself got.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.provider import (
    Answer,
    Asked,
    Provider,
    Refusal,
    Step,
    empty,
    overflow,
    says,
    slow,
)
from tests.client.server import TOKEN, Server

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[3]
TOO_LONG = Refusal(400, "", "prompt is too long: 213462 tokens > 200000 maximum")
CALL = Answer("", calls=(("look", {"place": "home"}),))
SCRIPTS: dict[str, tuple[list[Step], Any]] = {
    "openai_calls": (
        [says("fine indeed"), CALL, says("four five six"), says("x")],
        ["fine indeed", "four five six", 0],
    ),
    "openai_responses": (
        [says("hello there"), says("again"), says("end")],
        ["hello there", "again", "response.completed", 0],
    ),
    "openai_async": ([says("hi"), says("ho hum"), slow(2, says("late"))], ["hi", "ho hum", 0]),
    "anthropic_calls": (
        [Answer("hello", cached=1, thinking="hm"), says("b"), says("c d"), CALL, says("a b")],
        ["hello", "message_stop", "c d", 0],
    ),
    "anthropic_broken": ([TOO_LONG, TOO_LONG, TOO_LONG, empty()], [[400, 400, 400], 0]),
    "anthropic_async": ([says("hi"), says("ho"), says("hum")], ["hi", "message_stop", "hum", 0]),
    "langchain_agent": (
        [CALL, says("at home"), says("gone"), says("hi")],
        ["at home", "gone", "hi", 0],
    ),
    "langchain_summarized": (
        [says("a"), says("b"), says("sum"), says("c")],
        [["a", "b", "c"], 0],
    ),
    "langchain_async": ([says("hi")], ["hi", 0]),
    "langchain_fallback": ([says("word " * 300)] * 4, [True, True, 0]),
}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(responses=True) as made:
        yield made


def drive(python: Path, scenario: str, provider: Provider, server: Server, folder: Path) -> Any:
    """What the app of ``scenario`` printed: its own view of what it got."""
    command = [str(python), "-m", "tests.agents.wrappers.driver", scenario]
    done = subprocess.run(
        [*command, provider.url, server.url, TOKEN],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout.splitlines()[-1])


def billed(asked: Asked) -> int | None:
    """The prompt of a request as the provider counted it, where it said so."""
    return asked.prompt if asked.usage is not None else None


def told(server: Server) -> list[int | None]:
    """The prompt of every reply as it was reported, in order."""
    found: list[int | None] = []
    for event in server.events("model.replied"):
        usage = event.get("usage")
        if usage is None:
            found.append(None)
            continue
        beside = ("cache_read", "cache_write") if usage["dialect"] == "anthropic" else ()
        found.append(usage["input"] + sum(usage.get(part) or 0 for part in beside))
    return found


@pytest.mark.parametrize("scenario", list(SCRIPTS))
def test_the_app_gets_its_answers_and_the_server_the_provider_s_numbers(
    scenario: str, python: Path, provider: Provider, server: Server, tmp_path: Path
) -> None:
    steps, printed = SCRIPTS[scenario]
    provider.script("m", *steps)
    assert drive(python, scenario, provider, server, tmp_path) == printed
    replied = told(server)
    prompts = [billed(asked) for asked in provider.asked if asked.status == 200]
    if scenario == "openai_calls":
        # The last one left after the client was given back.
        prompts.pop()
    elif scenario == "anthropic_calls":
        # Left at its first event.
        prompts[-1] = None
    elif scenario == "langchain_summarized":
        # LangChain's own summary is no call of the agent's model.
        del prompts[2]
        assert len(server.events("history.snapshot")) == 1
    elif scenario == "openai_async":
        prompts = prompts[:2]
    assert replied == prompts


def test_overflows_empties_and_broken_streams_of_openai_are_what_they_are(
    python: Path, provider: Provider, server: Server, tmp_path: Path
) -> None:
    steps = [overflow(1_000, 1_200), empty(), empty(), says("a b c d"), says("ok"), says("raw")]
    provider.script("m", *steps)
    said, text, raw, mistakes = drive(python, "openai_broken", provider, server, tmp_path)
    assert "maximum context length is 1000" in said
    assert (text, raw, mistakes) == ("ok", "raw", 0)
    [failed] = server.events("model.failed")
    assert (failed["status"], failed["code"]) == (400, "context_length_exceeded")
    assert [event["n"] for event in server.events("reply.empty")] == [1, 2]
    replied = server.events("model.replied")
    assert [event.get("usage", {}).get("input") for event in replied] == [3, 3, None, None, None]


def test_overflows_and_empties_of_langchain_are_what_they_are(
    python: Path, provider: Provider, server: Server, tmp_path: Path
) -> None:
    provider.script("m", overflow(1_000, 1_200), empty())
    said, text, mistakes = drive(python, "langchain_broken", provider, server, tmp_path)
    assert (bool(said), text, mistakes) == (True, "", 0)
    assert server.events("model.failed")[0]["code"] == "context_length_exceeded"
    ended = [event["outcome"] for event in server.events("turn.ended")]
    assert ended == ["error", "silent"]


def test_callbacks_tell_streams_failures_and_anthropic_s_cache(
    python: Path, provider: Provider, server: Server, tmp_path: Path
) -> None:
    provider.script("m", says("fine"), says("so so"), overflow(), Answer("cached", cached=2))
    whole, text, said, cached, mistakes = drive(
        python, "langchain_callback", provider, server, tmp_path
    )
    assert (whole, text, bool(said), cached, mistakes) == ("fine", "so so", True, "cached", 0)
    assert told(server) == [3, 2, 3]
    assert server.events("model.replied")[-1]["usage"]["cache_read"] == 2


def test_a_real_call_takes_as_long_as_without_us(
    python: Path, provider: Provider, server: Server, tmp_path: Path,
    record_property: Any,
) -> None:  # fmt: skip
    provider.script("m", slow(0.1, says("fine")))
    medians = drive(python, "openai_times", provider, server, tmp_path)
    record_property("median milliseconds", json.dumps(medians))
    print(medians)
    bare = medians.pop("bare")
    assert all(found <= bare * 1.02 for found in medians.values()), (bare, medians)
