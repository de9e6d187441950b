"""Servers that are no help: down, slow, refusing, talking rubbish; one port, changed while used."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

# A refusal comes last: after it the SDK waits for a person before it tries again.
MANNERS = ("down", "slow", "rubbish", "refusing")
_ANSWERS = {
    "refusing": b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
    "rubbish": b"\x00\xff\x13garbage that is no HTTP\r\n" * 50,
}


class Unhelpful:
    """``manner`` is how it behaves from now on; ``met`` counts connections per manner."""

    def __init__(self) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = int(found.getsockname()[1])
        self.manner = "down"
        self.met = dict.fromkeys(MANNERS, 0)
        self._listener: socket.socket | None = None
        self._held: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def become(self, manner: str) -> None:
        self.close()
        self.manner = manner
        if manner == "down":
            return
        listener = socket.create_server(("127.0.0.1", self.port))
        self._listener = listener
        threading.Thread(target=self._serve, args=(listener, manner), daemon=True).start()

    def _serve(self, listener: socket.socket, manner: str) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self.met[manner] += 1
            if manner == "slow":
                # Taken, and never answered.
                self._held.append(client)
                continue
            with contextlib.suppress(OSError), client:
                client.settimeout(2)
                client.recv(65_536)
                client.sendall(_ANSWERS[manner])

    def close(self) -> None:
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        while self._held:
            self._held.pop().close()


@contextlib.contextmanager
def unhelpful() -> Iterator[Unhelpful]:
    server = Unhelpful()
    try:
        yield server
    finally:
        server.close()
