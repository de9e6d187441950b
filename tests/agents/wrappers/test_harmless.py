"""A call that is observed ends as it would have, and as soon, whatever becomes of the report."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import pytest

from ctxhealth.agents.openai_client import observe
from ctxhealth.client import Chat, Reporter
from tests.agents.wrappers.doubles import SHAPES, Method, Stream, openai, shaped
from tests.client.server import TOKEN, Server

CALLS = 50
# 2% of a call that takes 25 ms, which no model's does.
MOST_S = 0.000_5
SAY = [{"role": "user", "content": f"message {number}"} for number in range(100)]


@contextmanager
def rubbish() -> Iterator[str]:
    """A port that answers whatever comes with what is no protocol at all."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)
        over = threading.Event()

        def answer() -> None:
            while not over.is_set():
                try:
                    connection, _ = listening.accept()
                except OSError:
                    continue
                with connection:
                    connection.sendall(b"\x00\xff" * 500)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        thread.join(2)


def refused(server: Server) -> None:
    def close(ws: Any, hello: dict[str, Any]) -> bool:
        ws.close(4403, "not yours")
        return False

    server.on_hello = close


def slow(server: Server) -> None:
    server.mute = True


def spent(create: Callable[..., Any]) -> float:
    """The median time of a call that answers at once."""
    times, messages = [], list(SAY)
    for number in range(CALLS):
        messages.append({"role": "user", "content": f"and {number}"})
        began = time.perf_counter()
        create(model="m", messages=messages)
        times.append(time.perf_counter() - began)
    return median(times)


@pytest.mark.parametrize("state", ["down", "rubbish", "refused", "slow", "full"])
def test_a_call_takes_no_longer_whatever_the_server_does(state: str, server: Server) -> None:
    if state in ("refused", "slow"):
        {"refused": refused, "slow": slow}[state](server)
    with rubbish() as address:
        urls = {"down": "http://127.0.0.1:9", "rubbish": address}
        room = 20 if state == "full" else 20_000
        reporter = Reporter(
            urls.get(state, server.url), TOKEN, agent=f"h-{state}", queue_events=room
        )
        client = openai(Method(shaped(SHAPES["chat"])))
        bare = spent(client.chat.completions.create)
        observed = observe(client, reporter.chat("c"))
        added = spent(client.chat.completions.create) - bare
        reporter.close(0)
    assert added < MOST_S, f"{added * 1e6:.0f} µs"
    assert observed.mistakes == 0


def boom(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a mistake of ours")


@pytest.mark.parametrize("where", ["chat", "sent", "reply", "report", "gather", "count"])
def test_a_mistake_of_ours_is_counted_and_the_call_goes_on(
    where: str, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = shaped(SHAPES["chat"])
    chunks = [shaped(chunk) for chunk in SHAPES["chat_stream"]]
    client = openai(Method(answer, Stream(chunks)))
    source: Any = boom if where == "chat" else chat
    observed = observe(client, source, count=boom if where == "count" else None)
    places = {
        "sent": "openai_client.ChatDialect.sent", "reply": "openai_client.ChatDialect.reply",
        "gather": "openai_client.ChatGather.add", "report": "observed.Call._replied",
    }  # fmt: skip
    if where in places:
        monkeypatch.setattr(f"ctxhealth.agents.{places[where]}", boom)
    assert client.chat.completions.create(model="m", messages=SAY) is answer
    assert list(client.chat.completions.create(model="m", messages=SAY, stream=True)) == chunks
    assert observed.mistakes > 0
    assert observed.observer.last_mistake == "RuntimeError: a mistake of ours"


@pytest.mark.parametrize("reply", [None, 7, "text", object(), {"choices": "?"}])
def test_a_reply_of_an_unknown_shape_is_handed_on(reply: Any, chat: Chat) -> None:
    client = openai(Method(reply))
    observe(client, chat)
    assert client.chat.completions.create(model="m", messages=object()) is reply
