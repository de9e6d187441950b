"""One socket to the server: dialling, the handshake, and the frames that go out on it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from .epochs import now_ms
from .limits import FRAME_BYTES, HEARTBEAT_S, PROTOCOL, SILENT_BEATS, WELCOME_S, Limits
from .outbox import Outbox
from .stream import SendWindow

_PATH = "/ws/agent/v1/"
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
# A send that blocks this long meets a peer that no longer reads.
_SEND_S = 20.0
# In flight without any ack, and the server did not say busy.
_ACK_S = 60.0
_FRAME_ROOM = 512
_READ_LIMIT = 4 * FRAME_BYTES


class NoWelcome(Exception):
    """The server did not answer ``hello`` as the protocol asks."""


@dataclass(frozen=True)
class Hello:
    """Who speaks. ``caps`` as in the protocol: commands, fallback, text, read_only."""

    agent: str
    runtime: str | None
    runtime_version: str | None
    sdk: str
    caps: dict[str, Any]

    def frame(self, outbox: Outbox) -> str:
        fields = {
            "type": "hello",
            "protocols": [PROTOCOL],
            "agent": self.agent,
            "runtime": self.runtime,
            "runtime_version": self.runtime_version,
            "sdk": self.sdk,
            "epoch": outbox.epoch,
            "first_unacked": outbox.acked + 1,
            "next_seq": outbox.next_seq,
            "acked": outbox.acked,
            "now": now_ms(),
            "caps": self.caps,
            "last_incarnation": outbox.incarnation,
        }
        return json.dumps({key: value for key, value in fields.items() if value is not None})


def websocket_url(url: str) -> str:
    """``http(s)://host[:port]`` or ``ws(s)://...`` as the agents' address. Raises ValueError."""
    parts = urlsplit(url.strip())
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ValueError(f"url: {url!r} is not http(s)://host[:port] or ws(s)://host[:port]")
    if parts.username or parts.password:
        raise ValueError("url: a password belongs in token, not in the address")
    _ = parts.port  # raises where it is none
    path = _PATH if parts.path in ("", "/") else parts.path
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, "", ""))


def usable(url: str, token: str) -> str:
    """``token`` as a header takes it. Raises ValueError for what no request to ``url`` can carry.

    The token is never repeated in it.
    """
    websocket_url(url)
    if not all("!" <= letter <= "~" for letter in token.strip()):
        raise ValueError("token: must be one word of plain characters")
    return token.strip()


def dial(url: str, token: str, agent: str) -> ClientConnection:
    """Open the socket. No Origin and no cookies: the server refuses browsers on this route."""
    connecting = connect(
        websocket_url(url),
        additional_headers={"Authorization": f"Bearer {token}"},
        user_agent_header=agent,
        compression=None,
        open_timeout=10,
        close_timeout=2,
        max_size=_READ_LIMIT,
    )
    # Entered and never left, as it outlives this call; every release of websockets takes it so.
    return connecting.__enter__()


def greet(ws: ClientConnection, hello: str) -> dict[str, Any]:
    """Say hello, wait for ``welcome``. Raises NoWelcome, or ConnectionClosed with its code."""
    ws.send(hello)
    deadline = time.monotonic() + WELCOME_S
    while True:
        try:
            frame = parse(ws.recv(timeout=max(0.0, deadline - time.monotonic())))
        except TimeoutError:
            raise NoWelcome(f"no welcome within {WELCOME_S:.0f} s") from None
        if frame.get("type") != "welcome":
            continue
        if frame.get("protocol") != PROTOCOL:
            raise NoWelcome(f"the server speaks protocol {frame.get('protocol')}, not {PROTOCOL}")
        if not _is_count(frame.get("acked")):
            raise NoWelcome("welcome without a valid acked")
        return frame


def parse(raw: str | bytes) -> dict[str, Any]:
    """One frame; an empty dictionary where it is no JSON object (a newer server, or rubbish)."""
    try:
        frame = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return frame if isinstance(frame, dict) else {}


class Link:
    """A welcomed socket. One thread sends, one receives; ``window`` is shared under ``lock``."""

    def __init__(self, ws: ClientConnection, welcome: dict[str, Any], epoch: str) -> None:
        now = time.monotonic()
        self.ws = ws
        self.epoch = epoch
        self.lock = threading.Lock()
        self.limits = Limits.stated(welcome.get("limits"))
        self.window = SendWindow(int(welcome["acked"]), self.limits, now)
        beat = welcome.get("heartbeat_s")
        self.heartbeat_s = float(beat) if _is_count(beat) and beat else HEARTBEAT_S
        self.heard_at = now
        self.beat_at = now
        self.progressed = False
        self._sending_since: float | None = None

    def send_ready(self, outbox: Outbox) -> float | None:
        """Send what the window allows. Seconds until time makes room, or None."""
        while True:
            now = time.monotonic()
            with self.lock:
                room, start = self.window.room(now), self.window.sent + 1
                turn = self.window.turn_back
            if not room or start >= outbox.next_seq:
                return self.window.delay(now) if start < outbox.next_seq else None
            batch = outbox.read(start, room, self.limits.frame_bytes - _FRAME_ROOM)
            frame = events_frame(self.epoch, batch)
            with self.lock:
                if self.window.turn_back != turn:
                    continue
                # Before it leaves: its ack may come before ``send`` returns.
                self.window.record(len(batch), len(frame), now)
                outbox.sent_high = max(outbox.sent_high, batch[-1][0])
            if not self.send(frame.decode()):
                return None

    def beat(self, head: int) -> None:
        """A heartbeat, when it is time for one."""
        now = time.monotonic()
        if now - self.beat_at >= self.heartbeat_s:
            self.beat_at = now
            self.send(json.dumps({"type": "hb", "seq_head": head, "now": now_ms()}))

    def send(self, frame: str) -> bool:
        """False where the socket is gone; the receiving side sees why."""
        self._sending_since = time.monotonic()
        try:
            self.ws.send(frame)
        except (ConnectionClosed, OSError):
            return False
        finally:
            self._sending_since = None
        return True

    def trouble(self, now: float) -> str | None:
        """Why this socket must be given up although it looks open, or None."""
        blocked = self._sending_since
        if blocked is not None and now - blocked > _SEND_S:
            return "the server stopped reading"
        if now - self.heard_at > SILENT_BEATS * self.heartbeat_s:
            return f"nothing heard for {now - self.heard_at:.0f} s"
        waiting = self.window.waiting_since
        if waiting is not None and now - waiting > _ACK_S:
            return f"no ack for {now - waiting:.0f} s"
        return None

    def cut(self) -> None:
        """Break the socket without waiting for a peer that may be gone."""
        with contextlib.suppress(OSError):
            self.ws.socket.shutdown(socket.SHUT_RDWR)

    def bye(self, reason: str) -> None:
        self.send(json.dumps({"type": "bye", "reason": reason}))
        with contextlib.suppress(Exception):
            self.ws.close()


def events_frame(epoch: str, batch: list[tuple[int, bytes]]) -> bytes:
    """``events`` with each body's seq put in front of its other fields."""
    events = b",".join(b'{"seq":%d,%b' % (seq, raw[1:]) for seq, raw in batch)
    return b'{"type":"events","epoch":"%b","events":[%b]}' % (epoch.encode(), events)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
