"""Our websocket gives the application and the peer what the library's own way gives them.

The library is given one frame at a time here: of frames that come together with a bad one it
forgets those before it, ours does not.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.exceptions import InvalidState

from ctxhealth.ops.websocket import WebSocket

MOST = 600
REQUEST = (
    b"GET /x HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
TEXT, BINARY, CONT, CLOSE, PING, PONG = 0x1, 0x2, 0x0, 0x8, 0x9, 0xA


def frame(opcode: int, payload: bytes, *, fin: bool = True, masked: bool = True) -> bytes:
    size = len(payload)
    head = bytes([(0x80 if fin else 0) | opcode])
    bit = 0x80 if masked else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 65_536:
        head += bytes([bit | 126]) + size.to_bytes(2, "big")
    else:
        head += bytes([bit | 127]) + size.to_bytes(8, "big")
    if not masked:
        return head + payload
    mask = b"\x07\xa1\x00\xff"
    return head + mask + bytes(one ^ key for one, key in zip(payload, itertools.cycle(mask)))


class Wire(asyncio.Transport):
    """Keeps what was written; nothing is read after it closes."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False
        self.paused = False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


def run(
    kind: type[WebSocketsSansIOProtocol], pieces: list[bytes], ends_after: int
) -> tuple[list[Any], bytes, bool]:
    """(what the application received, what the peer was sent after the 101, whether it closed)."""
    received: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while len(received) < ends_after:
            received.append(await receive())
            if received[-1]["type"] == "websocket.disconnect":
                return
        await send({"type": "websocket.close", "code": 4400})
        received.append(await receive())

    async def main() -> tuple[bytes, bool]:
        config = Config(app, ws_max_size=MOST, ws_ping_interval=None, ws_per_message_deflate=False)
        config.load()
        state = ServerState()
        protocol = kind(config=config, server_state=state, app_state={})
        wire = Wire()
        protocol.connection_made(wire)
        protocol.data_received(REQUEST)
        await settled()
        begin = len(wire.sent)
        for piece in pieces:
            if wire.closed:
                break
            try:
                protocol.data_received(piece)
            except InvalidState:
                # As a transport does with what its protocol raises.
                wire.close()
            await settled()
            assert not wire.paused, "the application read all, yet nothing more is let in"
        sent, closed = until_close(bytes(wire.sent[begin:])), wire.closed
        protocol.connection_lost(None)
        await asyncio.gather(*state.tasks)
        if protocol.close_timer is not None:
            protocol.close_timer.cancel()
        return sent, closed

    sent, closed = asyncio.run(main())
    return received, sent, closed


def until_close(sent: bytes) -> bytes:
    """What the peer was sent up to the closing frame: what follows it, the peer ignores.

    A ping in the same segment as the fault may still be answered behind the close, or not,
    depending on how the stream was cut; the library itself does both.
    """
    at = 0
    while at + 2 <= len(sent):
        size, start = sent[at + 1], at + 2
        if size == 126:
            size, start = int.from_bytes(sent[start : start + 2], "big"), start + 2
        at_end = start + size
        if sent[at] & 0x0F == CLOSE:
            return sent[:at_end]
        at = at_end
    return sent


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def quiet() -> Any:
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("uvicorn.error").setLevel(logging.NOTSET)


def same(frames: list[bytes], pieces: list[bytes], ends_after: int = 1_000) -> list[Any]:
    ours = run(WebSocket, pieces, ends_after)
    assert ours == run(WebSocketsSansIOProtocol, frames, ends_after)
    return ours[0]


def test_texts_arrive_in_order_however_the_stream_is_cut() -> None:
    texts = ["a", "\u00e4\u20ac" * 70, "", "z" * 300]
    frames = [frame(TEXT, text.encode()) for text in texts]
    stream = b"".join(frames)
    for step in (1, 2, 7, 131, len(stream)):
        pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
        received = same(frames, pieces)
        assert [message.get("text") for message in received[: len(texts)]] == texts


def test_a_text_of_64_kib_and_more_arrives_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "MOST", 100_000)
    frames = [frame(TEXT, b"x" * 70_000), frame(TEXT, b"y")]
    stream = b"".join(frames)
    received = same(frames, [stream[:40_000], stream[40_000:]])
    assert [len(message["text"]) for message in received[:2]] == [70_000, 1]


FRAMES = st.one_of(
    st.builds(frame, st.just(TEXT), st.text(max_size=40).map(str.encode), fin=st.booleans()),
    st.builds(frame, st.just(TEXT), st.binary(min_size=100, max_size=140)),
    st.builds(frame, st.just(CONT), st.binary(max_size=400), fin=st.booleans()),
    st.builds(
        frame,
        st.sampled_from([TEXT, BINARY, PING, PONG, CLOSE, 0x3, 0xB]),
        st.binary(max_size=130),
        fin=st.booleans(),
        masked=st.sampled_from([True, True, True, False]),
    ),
    st.builds(frame, st.just(TEXT), st.integers(590, 610).map(lambda size: b"s" * size)),
    st.just(frame(CLOSE, b"\x03\xe8bye")),
    st.just(b"\xc1\x80\0\0\0\0"),
    st.just(frame(TEXT, b"plain")),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(FRAMES, min_size=1, max_size=8), st.lists(st.integers(1, 1_000), max_size=8))
def test_any_stream_means_the_same_as_to_the_library(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(frames)
    marks = sorted({cut for cut in cuts if cut < len(stream)})
    same(frames, [stream[a:b] for a, b in itertools.pairwise([0, *marks, len(stream)])])


@pytest.mark.parametrize("last", [frame(CLOSE, b"\x03\xe8"), frame(TEXT, b"late")])
def test_what_comes_after_the_applications_close_is_not_given_to_it(last: bytes) -> None:
    frames = [frame(TEXT, b"one"), frame(TEXT, b"two"), last]
    received = same(frames, frames, ends_after=1)
    assert [message.get("text") for message in received[:1]] == ["one"]
    assert received[-1]["type"] == "websocket.disconnect"
