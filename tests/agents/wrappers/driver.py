"""Runs in an environment with the published packages: one scenario, reported as an app would.

    python -m tests.agents.wrappers.driver SCENARIO PROVIDER_URL SERVER_URL TOKEN

Prints what the app itself got as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from ctxhealth.client import Chat, Reporter

SAY = [{"role": "user", "content": "one two three"}]
TOOL: Any = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}
SCENARIOS: dict[str, Callable[[str, Chat], Any]] = {}


def scenario(run: Callable[[str, Chat], Any]) -> Callable[[str, Chat], Any]:
    SCENARIOS[run.__name__] = run
    return run


def _openai(url: str, chat: Chat, **options: Any) -> Any:
    from openai import OpenAI

    from ctxhealth.agents.openai_client import observe

    client = OpenAI(base_url=url, api_key="k", max_retries=0)
    observed = observe(client, chat, **options)
    assert observed.unsupported == [], observed.unsupported
    return client, observed


def _anthropic(url: str, chat: Chat, **options: Any) -> Any:
    from anthropic import Anthropic

    from ctxhealth.agents.anthropic_client import observe

    client = Anthropic(base_url=url.removesuffix("/v1"), api_key="k", max_retries=0)
    observed = observe(client, chat, **options)
    return client, observed


@scenario
def openai_calls(url: str, chat: Chat) -> Any:
    client, observed = _openai(url, chat, turns=True)
    create = client.chat.completions.create
    whole = create(model="m", messages=SAY, max_tokens=50)
    reply = whole.choices[0].message
    messages = [*SAY, {"role": "assistant", "content": reply.content}]
    messages.append({"role": "user", "content": "and now a call"})
    called = create(model="m", messages=messages, tools=[TOOL]).choices[0].message
    messages += [called, {"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": "ok"}]
    stream = create(
        model="m", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    text = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
    observed.undo()
    create_again = client.chat.completions.create
    create_again(model="m", messages=SAY)
    return [reply.content, text, observed.mistakes]


@scenario
def openai_broken(url: str, chat: Chat) -> Any:
    import openai

    client, observed = _openai(url, chat)
    create = client.chat.completions.create
    try:
        create(model="m", messages=SAY)
    except openai.BadRequestError as error:
        said = str(error)
    create(model="m", messages=SAY)
    create(model="m", messages=SAY)
    with create(model="m", messages=SAY, stream=True) as stream:
        for _ in stream:
            break
    with client.chat.completions.stream(model="m", messages=SAY) as helper:
        text = helper.get_final_completion().choices[0].message.content
    raw = client.chat.completions.with_raw_response.create(model="m", messages=SAY)
    return [said, text, raw.parse().choices[0].message.content, observed.mistakes]


@scenario
def openai_responses(url: str, chat: Chat) -> Any:
    client, observed = _openai(url, chat)
    whole = client.responses.create(model="m", input="one two three")
    again = client.responses.create(model="m", input="four", previous_response_id=whole.id)
    kinds = [event.type for event in client.responses.create(model="m", input="x", stream=True)]
    return [whole.output_text, again.output_text, kinds[-1], observed.mistakes]


@scenario
def openai_async(url: str, chat: Chat) -> Any:
    from openai import AsyncOpenAI

    from ctxhealth.agents.openai_client import observe

    async def run() -> Any:
        async with AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            observed = observe(client, chat)
            create = client.chat.completions.create
            whole = await create(model="m", messages=SAY)
            options = {"include_usage": True}
            stream = await create(model="m", messages=SAY, stream=True, stream_options=options)
            text = "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
            slow = asyncio.ensure_future(create(model="m", messages=SAY))
            await asyncio.sleep(0.3)
            slow.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await slow
            return [whole.choices[0].message.content, text, observed.mistakes]

    return asyncio.run(run())


@scenario
def openai_times(url: str, chat: Chat) -> Any:
    """Medians in milliseconds of 50 calls each, bare and under five servers, in turns."""
    from openai import OpenAI

    from ctxhealth.agents.openai_client import observe

    silent = socket.create_server(("127.0.0.1", 0))
    addresses = {
        "up": None, "down": "http://127.0.0.1:9", "rubbish": url.removesuffix("/v1"),
        "refusing": str(chat.reporter.status()["url"]),
        "slow": f"http://127.0.0.1:{silent.getsockname()[1]}",
    }  # fmt: skip
    creates = {"bare": OpenAI(base_url=url, api_key="k").chat.completions.create}
    reporters = []
    for name, address in addresses.items():
        client, found = OpenAI(base_url=url, api_key="k"), chat
        if address is not None:
            reporters.append(Reporter(address, "t", agent=name))
            found = reporters[-1].chat("c")
        observe(client, found)
        creates[name] = client.chat.completions.create
    times: dict[str, list[float]] = {name: [] for name in creates}
    for _ in range(50):
        for name, create in creates.items():
            began = time.perf_counter()
            create(model="m", messages=SAY)
            times[name].append((time.perf_counter() - began) * 1_000)
    for reporter in reporters:
        reporter.close(0)
    return {name: round(median(taken), 3) for name, taken in times.items()}


@scenario
def anthropic_calls(url: str, chat: Chat) -> Any:
    client, observed = _anthropic(url, chat, turns=True)
    ask = {"model": "m", "max_tokens": 50}
    whole = client.messages.create(messages=SAY, **ask)
    events = [event.type for event in client.messages.create(messages=SAY, stream=True, **ask)]
    with client.messages.stream(messages=SAY, **ask) as stream:
        text = "".join(stream.text_stream)
    called = client.messages.create(messages=SAY, **ask).content
    messages = [*SAY, {"role": "assistant", "content": called}]
    result = {"type": "tool_result", "tool_use_id": called[0].id, "content": "found"}
    messages.append({"role": "user", "content": [result]})
    with client.messages.stream(messages=messages, **ask) as stream:
        for _ in stream:
            break
    return [whole.content[-1].text, events[-1], text, observed.mistakes]


@scenario
def anthropic_broken(url: str, chat: Chat) -> Any:
    import anthropic

    client, observed = _anthropic(url, chat)
    said = []
    for stream in (False, True):
        try:
            client.messages.create(model="m", max_tokens=5, messages=SAY, stream=stream)
        except anthropic.BadRequestError as error:
            said.append(error.status_code)
    try:
        with client.messages.stream(model="m", max_tokens=5, messages=SAY):
            pass
    except anthropic.BadRequestError as error:
        said.append(error.status_code)
    client.messages.create(model="m", max_tokens=5, messages=SAY)
    return [said, observed.mistakes]


@scenario
def anthropic_async(url: str, chat: Chat) -> Any:
    from anthropic import AsyncAnthropic

    from ctxhealth.agents.anthropic_client import observe

    async def run() -> Any:
        client = AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="k", max_retries=0)
        observed = observe(client, chat)
        ask = {"model": "m", "max_tokens": 50, "messages": SAY}
        whole = await client.messages.create(**ask)
        stream = await client.messages.create(stream=True, **ask)
        kinds = [event.type async for event in stream]
        async with client.messages.stream(**ask) as helper:
            text = await helper.get_final_text()
        return [whole.content[0].text, kinds[-1], text, observed.mistakes]

    return asyncio.run(run())


def main(name: str, provider: str, server: str, token: str) -> None:
    from tests.agents.wrappers.langchain_driver import SCENARIOS as MORE

    with Reporter(server, token, agent="driver") as reporter:
        chat = reporter.chat("c", window=1_000)
        print(json.dumps({**SCENARIOS, **MORE}[name](provider, chat)))
        assert reporter.flush(20), reporter.status()


if __name__ == "__main__":
    main(*sys.argv[1:])
