"""Servers that an agent must not notice: down, silent, refusing, sending rubbish."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
