"""A wire between browser and server that can go silent without closing anything."""

from __future__ import annotations

import contextlib
import socket
import threading

CHUNK = 65_536


class Wire:
    """Forwards TCP from its own ``port`` to the server's.

    ``fall_silent``: nothing passes any more and nothing is closed, as when a laptop slept or a
    network went away. ``heal``: what connects from now on passes; what was open stays dead.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._falls = 0
        self._silent = False
        self._ended = False
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fall_silent(self) -> None:
        self._falls += 1
        self._silent = True

    def heal(self) -> None:
        self._silent = False

    def close(self) -> None:
        self._ended = True
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.close()

    def _accept(self) -> None:
        while not self._ended:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                continue
            self._open += [near, far]
            life = -1 if self._silent else self._falls
            for source, sink in ((near, far), (far, near)):
                wire = threading.Thread(target=self._carry, args=(source, sink, life), daemon=True)
                wire.start()

    def _carry(self, source: socket.socket, sink: socket.socket, life: int) -> None:
        """Until either end closes; what a dead pair carries is swallowed, its end too."""
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                if life == self._falls:
                    sink.sendall(data)
            if life == self._falls:
                sink.shutdown(socket.SHUT_WR)
