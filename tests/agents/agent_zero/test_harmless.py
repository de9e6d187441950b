"""With the server down, slow, refusing or sending rubbish a turn takes as long as without it."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.agents.agent_zero.stand_in import StandIn

TURNS = 20


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """An address where every connection meets ``serve``."""
    door = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                caller, _ = door.accept()
            except OSError:
                return
            taken.append(caller)
            threading.Thread(target=serve, args=(caller,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
    finally:
        door.close()
        for caller in taken:
            caller.close()


def silent(caller: socket.socket) -> None:
    """Takes the connection and never says a word."""


def refusing(caller: socket.socket) -> None:
    caller.recv(4_096)
    caller.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    caller.close()


def rubbish(caller: socket.socket) -> None:
    try:
        while caller.recv(4_096):
            caller.sendall(b"\x00\xff\x81\x05rubbish" * 400)
    except OSError:
        return


@contextmanager
def down() -> Iterator[str]:
    door = socket.create_server(("127.0.0.1", 0))
    port = door.getsockname()[1]
    door.close()
    yield f"http://127.0.0.1:{port}"


SERVERS = {
    "down": down,
    "silent": lambda: listening(silent),
    "refusing": lambda: listening(refusing),
    "rubbish": lambda: listening(rubbish),
}


@pytest.mark.parametrize("trouble", SERVERS)
def test_no_turn_fails_and_no_hook_waits(host: StandIn, trouble: str) -> None:
    """What a hook costs is the processor's time of the thread it runs in, and no waiting."""
    with SERVERS[trouble]() as url:
        host.settings["url"] = url
        context = host.open()
        watch = host.module("watch")
        spent, real = [0.0], watch.seen

        def timed(point: str, agent: object, kwargs: dict[str, object]) -> None:
            began = time.perf_counter()
            real(point, agent, kwargs)
            spent[0] += time.perf_counter() - began

        watch.seen = timed
        costs = []
        for _ in range(TURNS):
            spent[0] = 0.0
            assert host.say(context) == "yes"
            costs.append(spent[0])
        # A real turn takes half a second and more: 2% of it is 10 ms.
        assert statistics.median(costs) < 0.010, costs
        assert not host.module("books").station().swallowed
