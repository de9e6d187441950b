"""What waits to be sent to one agent, coalesced: many acks become one.

One task per connection sends; everything else only notes and wakes it. Each send has a timeout:
an agent that does not read costs itself its connection and nobody else anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ctxhealth.wire.frames import Ack, Busy, Cancel, Command, Heartbeat, Rejected, Resend, Welcome

Send = Callable[[Any], Awaitable[None]]

SEND_SECONDS = 10.0
MAX_REJECTED = 200
MAX_FRAMES = 500
_ENCODER = msgspec.json.Encoder()


class Outgoing:
    """The slots of one connection. Lives on the loop; not thread safe."""

    __slots__ = (
        "_ack", "_acked_sent", "_busy", "_closing", "_frames", "_rejected", "_resend", "_send",
        "_wake", "epoch", "sent",
    )  # fmt: skip

    def __init__(self, send: Send, epoch: str) -> None:
        self.epoch = epoch
        self.sent = 0
        self._send = send
        self._wake = asyncio.Event()
        self._ack: int | None = None
        self._acked_sent = 0
        self._rejected: list[Rejected] = []
        self._resend: int | None = None
        self._busy: Busy | None = None
        self._frames: deque[Any] = deque()
        self._closing: tuple[int, str] | None = None

    def ack(self, upto: int, rejected: tuple[Rejected, ...] = ()) -> None:
        self._ack = upto if self._ack is None else max(upto, self._ack)
        self._rejected.extend(rejected)
        self._wake.set()

    def resend(self, seq: int) -> None:
        self._resend = seq
        self._wake.set()

    def busy(self, retry_ms: int, reason: str) -> None:
        self._busy = Busy(retry_ms=retry_ms, reason=reason)
        self._wake.set()

    def frame(self, frame: Welcome | Command | Cancel | Heartbeat) -> bool:
        """Send this frame in its turn; False where too many wait already."""
        if len(self._frames) >= MAX_FRAMES:
            return False
        self._frames.append(frame)
        self._wake.set()
        return True

    def close(self, code: int, reason: str = "") -> None:
        """Send what waits, then close; the first reason stands."""
        if self._closing is None:
            self._closing = (code, reason[:120])
            self._wake.set()

    @property
    def closing(self) -> bool:
        return self._closing is not None

    async def run(self) -> None:
        """Send until closed. Raises TimeoutError where the agent does not read."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            for frame in self._drain():
                await self._put({"type": "websocket.send", "text": _ENCODER.encode(frame).decode()})
                self.sent += 1
            if self._closing is not None:
                code, reason = self._closing
                await self._put({"type": "websocket.close", "code": code, "reason": reason})
                return

    def _drain(self) -> list[Any]:
        frames: list[Any] = list(self._frames)
        self._frames.clear()
        if self._ack is not None:
            frames.extend(self._acks(self._ack))
            self._ack = None
        if self._resend is not None:
            frames.append(Resend(epoch=self.epoch, from_=self._resend))
            self._resend = None
        if self._busy is not None:
            frames.append(self._busy)
            self._busy = None
        return frames

    def _acks(self, upto: int) -> list[Ack]:
        rejected, self._rejected = self._rejected, []
        acks = []
        while len(rejected) > MAX_REJECTED:
            some, rejected = rejected[:MAX_REJECTED], rejected[MAX_REJECTED:]
            acks.append(Ack(epoch=self.epoch, upto=some[-1].seq, rejected=some))
        acks.append(Ack(epoch=self.epoch, upto=upto, rejected=rejected))
        return acks

    async def _put(self, message: dict[str, Any]) -> None:
        async with asyncio.timeout(SEND_SECONDS):
            await self._send(message)
