"""A hand-written agent for the wire: it says exactly what a test tells it to, right or wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

PATH = "/ws/agent/v1/"
SECONDS = 10.0
Frame = dict[str, Any]


def hello(agent: str = "a1", epoch: str = "e1", **fields: Any) -> Frame:
    return {
        "type": "hello",
        "protocols": [1],
        "agent": agent,
        "epoch": epoch,
        "now": time.time_ns() // 1_000_000,
        "caps": {"commands": ["ping", "compact_fallback", "clear_latch", "snapshot"]},
        **fields,
    }


class RawAgent:
    """One socket. ``seen`` keeps every frame received, in order."""

    def __init__(self, url: str, token: str, headers: dict[str, str] | None = None) -> None:
        given = {"Authorization": f"Bearer {token}", **(headers or {})}
        opening = connect(url + PATH, additional_headers=given, max_size=None, open_timeout=SECONDS)
        self.socket: ClientConnection = opening.__enter__()
        self.seen: list[Frame] = []
        self.epoch = ""

    def __enter__(self) -> RawAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def hello(self, **fields: Any) -> Frame:
        """Say hello; the welcome."""
        said = hello(**fields)
        self.epoch = said["epoch"]
        self.send(said)
        return self.frame("welcome")

    def send(self, frame: Frame) -> None:
        self.socket.send(json.dumps(frame))

    def events(self, events: list[Frame], epoch: str | None = None) -> None:
        self.send({"type": "events", "epoch": epoch or self.epoch, "events": events})

    def frame(
        self, kind: str, seconds: float = SECONDS, where: Callable[[Frame], bool] = bool
    ) -> Frame:
        """The next frame of this type (others are kept in ``seen``)."""
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            assert left > 0, f"no {kind} within {seconds} s; seen: {self.seen[-5:]}"
            frame: Frame = json.loads(self.socket.recv(timeout=left))
            self.seen.append(frame)
            if frame["type"] == kind and where(frame):
                return frame

    def acked(self, upto: int, seconds: float = SECONDS) -> Frame:
        """Wait for an ack of at least ``upto``."""
        return self.frame("ack", seconds, lambda frame: frame["upto"] >= upto)

    def closed(self, seconds: float = SECONDS) -> tuple[int, str]:
        """Wait for the server's close: code and reason."""
        until = time.monotonic() + seconds
        while True:
            try:
                left = max(0.01, until - time.monotonic())
                self.seen.append(json.loads(self.socket.recv(timeout=left)))
            except ConnectionClosed as ended:
                assert ended.rcvd is not None
                return ended.rcvd.code, ended.rcvd.reason

    def quiet(self, kind: str, seconds: float = 0.5) -> None:
        """Assert that no frame of this type comes in that time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            try:
                frame: Frame = json.loads(self.socket.recv(timeout=left))
            except TimeoutError:
                return
            self.seen.append(frame)
            assert frame["type"] != kind, frame
