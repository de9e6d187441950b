"""The way back from the writer's thread: one hop onto the loop for all that one commit answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any


class Hub:
    """Made on the loop; ``post`` is for any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._armed = False
        self._room = asyncio.Event()

    def post(self, fn: Callable[..., None], *args: Any) -> None:
        """Call ``fn`` on the loop soon. Never blocks."""
        self._waiting.append((fn, args))
        if self._armed:
            return
        self._armed = True
        try:
            self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:
            # The loop is closed: nobody waits for an answer any more.
            self._waiting.clear()

    def _drain(self) -> None:
        # Disarmed first: a post that comes now must arm again.
        self._armed = False
        while self._waiting:
            fn, args = self._waiting.popleft()
            fn(*args)
        self._room.set()

    async def room(self, seconds: float) -> bool:
        """Wait until something was written; False where nothing was in that time."""
        self._room.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._room.wait()
        except TimeoutError:
            return False
        return True
