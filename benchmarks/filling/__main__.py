"""Fills a data folder for benchmarks: `python -m benchmarks.filling CHATS EVENTS`.

CHATS chats with one answered turn each, and one chat more with EVENTS events. Prints its number.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxhealth.settings")

import django

django.setup()

from ctxhealth.store import queries  # noqa: E402
from ctxhealth.store.intake import Intake, intake_of  # noqa: E402
from ctxhealth.store.writer import Writer  # noqa: E402
from ctxhealth.wire import decode_event  # noqa: E402
from tests.live.world import Agent, Body, answered, encoded  # noqa: E402

BATCH = 500


def main(chats: int, events: int) -> int:
    agent = Agent("filler")
    writer = Writer()
    writer.start()
    try:
        waiting: list[Intake] = []
        for body in bodies(chats, events):
            agent.seq += 1
            waiting.append(intake_of(decode_event(encoded(agent.seq, body))))
            if len(waiting) == BATCH:
                submit(writer, agent, waiting)
                waiting = []
        submit(writer, agent, waiting)
    finally:
        writer.stop()
    found = queries.chat_find("filler", "long")
    assert found is not None
    return found.id


def bodies(chats: int, events: int) -> Iterator[Body]:
    for n in range(chats):
        name = f"chat-{n}"
        yield {
            "type": "chat.opened",
            "chat": name,
            "title": f"Chat number {n} of many",
            "model": f"model-{n % 7}",
            "window": 200_000,
        }
        yield from answered(name, "t", 20_000 + (n * 7_919) % 150_000)
    yield {"type": "chat.opened", "chat": "long", "title": "The long one", "window": 200_000}
    for n in range(events // 4):
        yield from answered("long", f"t{n}", 20_000 + (n * 997) % 120_000)


def submit(writer: Writer, agent: Agent, waiting: list[Intake]) -> None:
    """One batch, waited for."""
    done = threading.Event()
    connected = agent.connected
    taken = writer.submit_events(connected.stream, connected.conn_no, waiting, lambda _: done.set())
    assert taken
    assert done.wait(60)


if __name__ == "__main__":
    print(main(int(sys.argv[1]), int(sys.argv[2])))
