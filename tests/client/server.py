"""The server's half of protocol 1, small but real: a socket, a store of streams, and faults.

A fault is set by a test and acts on the next frame; what is stored is what an honest server
would have made durable.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from ctxhealth.wire.decode import Reject, decode_event
from ctxhealth.wire.frames import AGENT_FRAME
from ctxhealth.wire.frames import Events as EventsFrame

TOKEN = "ctxh_test_0123456789abcdef"
LIMITS = {
    "frame_bytes": 262_144, "batch": 100, "inflight": 1_000, "event_bytes": 65_536, "rate": 20_000,
}  # fmt: skip
Before = Callable[["Server", ServerConnection, dict[str, Any]], bool]


def eventually(condition: Callable[[], Any], what: str = "it", seconds: float = 15.0) -> Any:
    """Poll until ``condition()`` is true and return it; fails the test after ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError(f"waited {seconds:.0f} s for {what}")


def cut(ws: ServerConnection) -> None:
    """End the connection as a broken cable would: no close frame."""
    with contextlib.suppress(OSError):
        ws.socket.shutdown(socket.SHUT_RDWR)


class Server:
    """``streams``: epoch -> the raw events stored, in order. ``hellos``: every hello."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.streams: dict[str, list[dict[str, Any]]] = {}
        self.hellos: list[dict[str, Any]] = []
        self.beats: list[dict[str, Any]] = []
        self.byes: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.conflicts: list[int] = []
        self.duplicates = 0
        self.resends = 0
        self.incarnation = "life-1"
        self.limits = dict(LIMITS)
        self.heartbeat_s: float = 15
        self.mute = False
        self.before_events: Before | None = None
        self.on_hello: Callable[[ServerConnection, dict[str, Any]], bool] | None = None
        self.live: list[ServerConnection] = []
        self.port = 0
        self._server: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Server:
        # The same port again after a stop: that is what an agent meets after a restart.
        self._server = serve(
            self._handle, "127.0.0.1", self.port, compression=None, max_queue=None, close_timeout=1
        )
        self.port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self.drop()
            self._server.socket.close()
            self._server = None

    def drop(self, code: int | None = None, reason: str = "") -> None:
        """End all connections: with a close code, or as a cut cable would."""
        for ws in list(self.live):
            with contextlib.suppress(Exception):
                ws.close(code, reason) if code is not None else cut(ws)

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """All stored events of all streams, oldest stream first."""
        with self.lock:
            stored = [event for stream in self.streams.values() for event in stream]
        return [event for event in stored if kind is None or event["type"] == kind]

    def stream(self) -> list[dict[str, Any]]:
        """The only stream."""
        with self.lock:
            assert len(self.streams) == 1, f"{len(self.streams)} streams"
            return list(next(iter(self.streams.values())))

    def send(self, frame: dict[str, Any]) -> None:
        """To the newest connection."""
        eventually(lambda: self.live, "a connection")
        self.live[-1].send(json.dumps(frame))

    def command(self, id: str, kind: str, chat: str | None = "c", **fields: Any) -> None:
        frame = {
            "type": "command", "id": id, "kind": kind, "chat": chat, "args": {}, "expected": {},
            "deliver_ms": 60_000, "lease_s": 600, "reason": "test", "by": "ann", **fields,
        }  # fmt: skip
        self.send(frame)

    def states(self, command: str) -> list[str]:
        """What the agent said about a command, in the order stored."""
        told = self.events("command.progress")
        return [event["state"] for event in told if event["command"] == command]

    def ended(self, command: str) -> dict[str, Any]:
        """The command's last progress event, once that is an end."""
        ends = ("succeeded", "failed", "refused", "expired", "cancelled", "unknown")

        def last() -> Any:
            told = [e for e in self.events("command.progress") if e["command"] == command]
            return told[-1] if told and told[-1]["state"] in ends else None

        found: dict[str, Any] = eventually(last, f"the end of {command}")
        return found

    # -- one connection

    def _handle(self, ws: ServerConnection) -> None:
        assert ws.request is not None
        self.headers.append({k.lower(): v for k, v in ws.request.headers.raw_items()})
        try:
            self._serve(ws)
        except ConnectionClosed:
            pass
        finally:
            with contextlib.suppress(ValueError):
                self.live.remove(ws)

    def _serve(self, ws: ServerConnection) -> None:
        hello = json.loads(ws.recv())
        AGENT_FRAME.decode(json.dumps(hello))
        self.hellos.append(hello)
        if self.headers[-1].get("authorization") != f"Bearer {TOKEN}":
            ws.close(4401, "unknown token")
            return
        if self.on_hello is not None and not self.on_hello(ws, hello):
            return
        self._welcome(ws, hello)
        self.live.append(ws)
        for raw in ws:
            AGENT_FRAME.decode(raw)
            self._frame(ws, json.loads(raw), raw)

    def _welcome(self, ws: ServerConnection, hello: dict[str, Any]) -> None:
        with self.lock:
            acked = len(self.streams.setdefault(hello["epoch"], []))
        ws.send(
            json.dumps(
                {
                    "type": "welcome", "protocol": 1, "server": "test", "acked": acked,
                    "incarnation": self.incarnation, "limits": self.limits,
                    "heartbeat_s": self.heartbeat_s, "now": int(time.time() * 1000),
                }
            )
        )  # fmt: skip

    def _frame(self, ws: ServerConnection, frame: dict[str, Any], raw: str | bytes) -> None:
        if self.mute:
            return
        kind = frame["type"]
        if kind == "hb":
            self.beats.append(frame)
            self._send(ws, {"type": "hb", "acked": None, "now": int(time.time() * 1000)})
        elif kind == "bye":
            self.byes.append(frame)
        elif kind == "events":
            before, carry_on = self.before_events, True
            if before is not None:
                carry_on = before(self, ws, frame)
            if carry_on:
                self.store(ws, frame, raw)

    def store(
        self, ws: ServerConnection, frame: dict[str, Any], raw: str | bytes | None = None
    ) -> None:
        """Dedupe, store, ack; a hole is answered with resend."""
        limits = self.limits
        size = len(raw) if raw is not None else len(json.dumps(frame))
        assert len(frame["events"]) <= limits["batch"], "a batch over the limit"
        assert size <= limits["frame_bytes"], "a frame over the limit"
        rejected = []
        if raw is not None:
            parsed: EventsFrame = AGENT_FRAME.decode(raw)
            rejected = [r for r in map(_refusal, parsed.events) if r is not None]
        with self.lock:
            stream = self.streams.setdefault(frame["epoch"], [])
            for event in frame["events"]:
                if event["seq"] > len(stream) + 1:
                    self.resends += 1
                    resend = {"type": "resend", "epoch": frame["epoch"], "from": len(stream) + 1}
                    self._send(ws, resend)
                    return
                self._keep(stream, event)
            upto = len(stream)
        ack = {"type": "ack", "epoch": frame["epoch"], "upto": upto, "rejected": rejected}
        self._send(ws, ack)

    def _keep(self, stream: list[dict[str, Any]], event: dict[str, Any]) -> None:
        if event["seq"] == len(stream) + 1:
            stream.append(event)
            return
        self.duplicates += 1
        if stream[event["seq"] - 1] != event:
            self.conflicts.append(event["seq"])

    def _send(self, ws: ServerConnection, frame: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionClosed):
            ws.send(json.dumps({k: v for k, v in frame.items() if v is not None}))


def _refusal(raw: Any) -> dict[str, Any] | None:
    try:
        decode_event(bytes(raw))
    except Reject as reject:
        return {
            "seq": reject.seq, "code": reject.code, "path": reject.path, "detail": reject.detail,
        }  # fmt: skip
    return None


@contextlib.contextmanager
def running() -> Iterator[Server]:
    server = Server().start()
    try:
        yield server
    finally:
        server.stop()
