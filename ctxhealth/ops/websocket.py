"""uvicorn's websocket with a short way for what agents send by the thousand: whole text frames.

The library's parser is general and costs about 6 us a frame. Here a masked text frame that stands
alone goes straight to the application. Everything else goes to the library frame by frame, so
that it always stands between two frames: fragments, pings, closing, and whatever is wrong, with
what the library answers to it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import apply_mask  # type: ignore[attr-defined]
from websockets.protocol import State

_TEXT = 0x81  # the last and only frame of its message, no extension
_MASKED = 0x80


class Messages:
    """What waits for the application; one reader at a time, as ASGI has it."""

    __slots__ = ("_loop", "_reader", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Any] = deque()
        self._reader: asyncio.Future[None] | None = None

    def empty(self) -> bool:
        return not self._waiting

    def put_nowait(self, message: Any) -> None:
        self._waiting.append(message)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def get(self) -> Any:
        while not self._waiting:
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return self._waiting.popleft()


class WebSocket(WebSocketsSansIOProtocol):
    """``_held`` is the beginning of a frame, ``_due`` how many bytes of it make a difference."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.queue = Messages(self.loop)  # type: ignore[assignment]
        self._asked = False
        self._lost = False
        self._held = bytearray()
        self._due = 0

    def data_received(self, data: bytes) -> None:
        if not self._asked or self._lost:
            # The request comes first, whole and alone. A stream with a bad header has no frames.
            self._asked = True
            super().data_received(data)
            return
        if self._held:
            self._held += data
            if len(self._held) < self._due:
                return
            data = bytes(self._held)
            self._held.clear()
        self._due = 0
        taken = self._frames(data)
        if taken < len(data):
            self._held += data[taken:]

    def _frames(self, data: bytes) -> int:
        """Take the frames that are whole; how many bytes they are."""
        at, end, most = 0, len(data), self.config.ws_max_size
        plain = self._plain
        while end - at >= 2:
            size, start = data[at + 1] & 0x7F, at + 6
            if size >= 126:
                long = 2 if size == 126 else 8
                start += long
                if end < start:
                    break
                size = int.from_bytes(data[at + 2 : at + 2 + long], "big")
            if size > most or not data[at + 1] & _MASKED:
                self._lost = True
                super().data_received(data[at:])
                return end
            stop = start + size
            if stop > end:
                self._due = stop - at
                break
            if not (plain and data[at] == _TEXT and self._text(data, start, stop)):
                super().data_received(data[at:stop])
                plain = self._plain
            at = stop
        self._hold_back()
        return at

    @property
    def _plain(self) -> bool:
        """Whether a text frame would be a message: open, and in no other message's middle."""
        conn = self.conn
        return conn.state is State.OPEN and conn.current_size is None and not self.close_sent

    def _text(self, data: bytes, start: int, stop: int) -> bool:
        try:
            text = apply_mask(data[start:stop], data[start - 4 : start]).decode()
        except UnicodeDecodeError:
            return False
        self.queue.put_nowait({"type": "websocket.receive", "text": text})
        return True

    def _hold_back(self) -> None:
        if not self.read_paused and not self.queue.empty() and self._plain:
            self.read_paused = True
            self.transport.pause_reading()

    async def receive(self) -> Any:
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self.transport.resume_reading()
        return message
