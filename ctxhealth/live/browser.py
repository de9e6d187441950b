"""One open page: what it was sent, when it last was, and the one task that sends.

Handlers of the consumer only say "something changed". This task looks what the page shows by
now, at most four times a second, and sends what differs from what this browser has: the latest
state, never a delta. A browser that reads slowly slows its own task and nothing else.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import msgspec

MIN_INTERVAL_SECONDS = 0.25
RESTS_PER_WORK = 2
MAX_REST_SECONDS = 2.0
TICK_SECONDS = 15.0
SEND_TIMEOUT_SECONDS = 10.0

Send = Callable[[str], Awaitable[None]]
Counts = dict[str, int]


class LivePage(Protocol):
    """What one kind of page shows."""

    @property
    def due(self) -> float | None:
        """Loop time at which to look again although nothing was marked; None: no need."""

    def concerns(self, chats: Iterable[int]) -> bool:
        """Whether a change of one of these chats can change this page."""

    def show(self, chats: list[int]) -> None:
        """The browser says which chats stand on its page."""

    async def frames(self) -> list[str]:
        """Frames that bring the browser from what it was sent to the present state."""

    async def counts(self) -> Counts:
        """Numbers that travel with the tick, by name."""


class TooSlow(Exception):
    """The browser did not take a frame in time."""


class BrowserLeft(Exception):
    """The browser went away while a frame was on its way to it."""


class Browser:
    """Runs the page's only sending task.

    ``renew`` is called at each tick: it checks the person's rights again and re-joins the
    groups, and returns False where the socket must end.
    """

    def __init__(
        self,
        page: LivePage,
        send: Send,
        renew: Callable[[], Awaitable[bool]],
        *,
        tick_seconds: float = TICK_SECONDS,
        send_timeout: float = SEND_TIMEOUT_SECONDS,
    ) -> None:
        self.page = page
        self._send = send
        self._renew = renew
        self._tick_seconds = tick_seconds
        self._send_timeout = send_timeout
        self._wake = asyncio.Event()

    def mark(self, chats: Iterable[int] | None) -> None:
        """Some chats changed; None: any may have."""
        if chats is None or self.page.concerns(chats):
            self._wake.set()

    def show(self, chats: list[int]) -> None:
        self.page.show(chats)
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled or until ``renew`` says no (returns).

        Raises TooSlow and BrowserLeft.
        """
        loop = asyncio.get_running_loop()
        tick_at = loop.time()
        while True:
            started = loop.time()
            if started >= tick_at:
                if not await self._renew():
                    return
                await self._say_tick()
                # Spread, so that a thousand pages opened together do not look together.
                tick_at = started + self._tick_seconds * random.uniform(0.8, 1.0)
            for frame in await self.page.frames():
                await self._send_in_time(frame)
            await asyncio.sleep(pause_after(loop.time() - started))
            due = self.page.due
            await self._wait_until(tick_at if due is None else min(tick_at, due))

    async def _wait_until(self, moment: float) -> None:
        timeout = moment - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(0.0, timeout)):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    async def _say_tick(self) -> None:
        counts = await self.page.counts()
        await self._send_in_time(json_frame("tick", now=int(time.time() * 1000), **counts))

    async def _send_in_time(self, frame: str) -> None:
        try:
            async with asyncio.timeout(self._send_timeout):
                await self._send(frame)
        except TimeoutError as error:
            raise TooSlow from error
        except OSError as error:
            raise BrowserLeft from error


def pause_after(took: float) -> float:
    """Seconds to rest after an update that took ``took``: four a second while that is cheap.

    Where queries and rendering queue up, every page slows itself down before it slows the writer.
    """
    return max(MIN_INTERVAL_SECONDS - took, min(took * RESTS_PER_WORK, MAX_REST_SECONDS))


def json_frame(kind: str, **fields: Any) -> str:
    """A frame for scripts. It starts with ``{``, which no fragment does."""
    return msgspec.json.encode({"type": kind, **fields}).decode()
