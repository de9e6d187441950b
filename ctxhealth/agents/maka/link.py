"""One connection to the runtime host: the handshake, questions and answers, what it pushes.

A thread reads and never waits for anything but the socket, so that the host does not take the
bridge for a slow consumer; what it pushes goes to ``on_frame``, which must return at once.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

from ctxhealth.agents.maka import frames
from ctxhealth.agents.maka.frames import Frame
from ctxhealth.agents.maka.host import ANSWER_S, HELLO_S, IN_FLIGHT
from ctxhealth.agents.maka.sockets import Ended, Socket, Unreachable, open_socket


class Incompatible(Exception):
    """The host speaks another epoch; ``epoch`` is its own."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"unsupported host epoch {epoch}")
        self.epoch = epoch


class Link:
    """Raises Unreachable, Unauthorized or Incompatible where no connection comes about."""

    def __init__(
        self, address: str, credential: str | None, name: str, epoch: int,
        on_frame: Callable[[Link, Frame], None],
    ) -> None:  # fmt: skip
        self._socket: Socket = open_socket(address, credential)
        self._on_frame = on_frame
        self._names = itertools.count(1)
        self._room = threading.Semaphore(IN_FLIGHT)
        self._came = threading.Condition()
        self._asked: set[str] = set()
        self._answers: dict[str, Frame] = {}
        self.alive = True
        try:
            self.welcome = self._greet(name, epoch)
        except BaseException:
            self._socket.close()
            raise
        threading.Thread(target=self._read, name="maka-link", daemon=True).start()

    def ask(self, operation: str, **fields: Any) -> Any:
        """The operation's result. Raises HostSaid, or Ended where the connection is gone."""
        name = f"q{next(self._names)}"
        with self._room:
            with self._came:
                self._asked.add(name)
            self._send(frames.request(name, operation, fields))
            return frames.result_of(self._answer(name, operation))

    def close(self) -> None:
        self.alive = False
        self._socket.close()

    def _greet(self, name: str, epoch: int) -> Frame:
        try:
            self._socket.send(frames.hello(name, epoch))
            frame = frames.parse(self._socket.receive(HELLO_S))
        except (Ended, TimeoutError) as error:
            raise Unreachable("the host did not answer hello") from error
        kind = frame.get("kind")
        if kind == "incompatible":
            own = frame.get("compatibilityEpoch")
            raise Incompatible(own if isinstance(own, int) else 0)
        if kind == "draining":
            raise Unreachable("the host is about to end")
        if kind != "accepted":
            raise Unreachable(f"the host answered hello with {kind!r}")
        return frame

    def _send(self, text: str) -> None:
        try:
            self._socket.send(text)
        except Ended:
            self.alive = False
            raise

    def _answer(self, name: str, operation: str) -> Frame:
        end = time.monotonic() + ANSWER_S
        with self._came:
            while name not in self._answers:
                left = end - time.monotonic()
                if not self.alive:
                    raise Ended(f"the connection ended before {operation} was answered")
                if left <= 0:
                    self._asked.discard(name)
                    raise Ended(f"{operation} was not answered within {ANSWER_S:.0f} s")
                self._came.wait(left)
            self._asked.discard(name)
            return self._answers.pop(name)

    def _read(self) -> None:
        try:
            while self.alive:
                self._take(frames.parse(self._socket.receive()))
        except Ended:
            pass
        finally:
            with self._came:
                self.alive = False
                self._came.notify_all()
            self._on_frame(self, {"kind": "ended"})

    def _take(self, frame: Frame) -> None:
        name = frame.get("requestId")
        if name is None:
            self._on_frame(self, frame)
            return
        with self._came:
            if name in self._asked:
                self._answers[name] = frame
                self._came.notify_all()
