"""A client that costs little: prebuilt frames, raw sockets, one thread, a window per connection."""

from __future__ import annotations

import base64
import json
import os
import re
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

UPTO = re.compile(rb'"upto":(\d+)')
CHATS = 10
WRITE = 64
HEADERS = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
    "Authorization: Bearer {token}\r\n\r\n"
)


def masked(payload: bytes) -> bytes:
    """One client text frame; the mask is zero, which the server undoes like any other."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x81, 0x80 | size)
    elif size < 65_536:
        head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
    return head + b"\0\0\0\0" + payload


def events(count: int, size: int) -> Iterator[dict[str, Any]]:
    """An agent at work on ten chats: questions, requests, replies, tool calls and results.

    ``size`` is the bytes of an event on average, most of it in the messages' texts.
    """
    text = "the quick brown fox reads a file and says what is in it; "
    texts = (text * (size // 10))[: max(20, (size * 5 - 900) // 3)]
    step = [0] * CHATS
    for seq in range(1, count + 1):
        chat = seq % CHATS
        n = step[chat]
        step[chat] += 1
        yield {"seq": seq, "ts": 1_796_000_000_000 + seq, "chat": f"chat-{chat}",
               **_body(n // 5, n % 5, texts)}  # fmt: skip


def _body(turn: int, part: int, text: str) -> dict[str, Any]:
    load = 20_000 + turn % 500 * 120
    if part == 0:
        return {"type": "message.added", "id": f"u{turn}", "role": "user", "kind": "text",
                "tokens": 40, "text": text}  # fmt: skip
    if part == 1:
        return {"type": "request.sent", "request": f"r{turn}", "local": load, "max_output": 4096}
    if part == 2:
        return {"type": "model.replied", "request": f"r{turn}", "finish": "tool_use",
                "usage": {"dialect": "openai", "input": load, "output": 60},
                "content": {"text_chars": 80, "tool_calls": 1}}  # fmt: skip
    if part == 3:
        return {"type": "message.added", "id": f"a{turn}", "role": "assistant",
                "kind": "tool_call", "tokens": 30, "calls": [f"k{turn}"], "text": text}  # fmt: skip
    return {"type": "message.added", "id": f"t{turn}", "role": "tool", "kind": "tool_result",
            "tokens": 50, "answers": [f"k{turn}"], "text": text}  # fmt: skip


def frames(count: int, size: int, per_frame: int) -> list[tuple[int, bytes]]:
    """(last seq, frame) for one connection; average bytes of an event are close to ``size``."""
    made: list[tuple[int, bytes]] = []
    batch: list[dict[str, Any]] = []
    for event in events(count, size):
        batch.append(event)
        if len(batch) == per_frame or event["seq"] == count:
            payload = {"type": "events", "epoch": "e1", "events": batch}
            made.append((event["seq"], masked(json.dumps(payload, separators=(",", ":")).encode())))
            batch = []
    return made


@dataclass
class Conn:
    sock: socket.socket
    frames: list[tuple[int, bytes]]
    next: int = 0
    acked: int = 0
    buffer: bytes = b""
    out: bytes = b""
    sent_at: dict[int, float] = field(default_factory=dict)


def connect(port: int, path: str, token: str, agent: str) -> socket.socket:
    """Handshake, hello, welcome."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=30)
    key = base64.b64encode(os.urandom(16)).decode()
    sock.sendall(HEADERS.format(path=path, port=port, key=key, token=token).encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += sock.recv(4096)
    assert b" 101 " in answer.split(b"\r\n")[0], answer[:200]
    hello = {"type": "hello", "protocols": [1], "agent": agent, "epoch": "e1"}
    sock.sendall(masked(json.dumps(hello).encode()))
    welcome = answer.split(b"\r\n\r\n", 1)[1]
    while b"welcome" not in welcome or not welcome.endswith(b"}"):
        welcome += sock.recv(4096)
    return sock


def send_all(conns: list[Conn], window: int, after: Callable[[], None] | None = None) -> float:
    """Send everything, at most ``window`` events unacked per connection; seconds it took."""
    chooser = selectors.DefaultSelector()
    for conn in conns:
        conn.sock.setblocking(False)
        chooser.register(conn.sock, selectors.EVENT_READ, conn)
    began = time.perf_counter()
    left = len(conns)
    for conn in conns:
        _fill(conn, window)
    while left:
        ready = chooser.select(30)
        assert ready, f"stuck: {[(c.acked, c.frames[-1][0]) for c in conns][:5]}"
        for key, _ in ready:
            conn = key.data
            if _read(conn) and conn.acked >= conn.frames[-1][0]:
                chooser.unregister(conn.sock)
                left -= 1
                continue
            _fill(conn, window)
    took = time.perf_counter() - began
    for conn in conns:
        conn.sock.setblocking(True)
    return took


def _fill(conn: Conn, window: int) -> None:
    while conn.next < len(conn.frames) or conn.out:
        if not conn.out:
            chunk: list[bytes] = []
            while (
                conn.next < len(conn.frames)
                and len(chunk) < WRITE
                and conn.frames[conn.next][0] - conn.acked <= window
            ):
                chunk.append(conn.frames[conn.next][1])
                conn.next += 1
            if not chunk:
                return
            conn.out = b"".join(chunk)
        try:
            sent = conn.sock.send(conn.out)
        except BlockingIOError:
            return
        conn.out = conn.out[sent:]


def _read(conn: Conn) -> bool:
    try:
        data = conn.sock.recv(65_536)
    except BlockingIOError:
        return False
    assert data, "the server closed the connection"
    conn.buffer = (conn.buffer + data)[-4_096:]
    found = UPTO.findall(conn.buffer)
    if found:
        conn.acked = max(conn.acked, int(found[-1]))
    return bool(found)


def paced(conn: Conn, per_second: float, seconds: float) -> list[float]:
    """Open loop on one connection: one frame at its time; seconds to each frame's ack."""
    waits: list[float] = []
    count = min(len(conn.frames), int(per_second * seconds))
    conn.sock.setblocking(False)
    began = time.perf_counter()
    sent = done = 0
    while done < count:
        now = time.perf_counter()
        while sent < count and began + sent / per_second <= now:
            conn.out += conn.frames[sent][1]
            sent += 1
        if conn.out:
            with suppress(BlockingIOError):
                conn.out = conn.out[conn.sock.send(conn.out) :]
        if _read(conn):
            now = time.perf_counter()
            while done < sent and conn.frames[done][0] <= conn.acked:
                waits.append(now - (began + done / per_second))
                done += 1
        else:
            time.sleep(0.0001)
        assert now - began < seconds + 30, "stuck"
    conn.sock.setblocking(True)
    return waits
