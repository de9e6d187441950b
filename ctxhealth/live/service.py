"""What every open page of this process shares, and the bridge from the writer's thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from ctxhealth.live.board import Board
from ctxhealth.live.chats import Chats
from ctxhealth.live.hints import Hints
from ctxhealth.live.looks import Looks
from ctxhealth.live.reads import Reads
from ctxhealth.live.render import Renderer
from ctxhealth.store.unit import ChatChange, CommandChange

MAX_WAITING = 50_000


class Live:
    """Made on the event loop that serves the sockets; ``on_commit`` is for any thread.

    ``browsers`` counts open pages, ``skipped`` changes that were not kept because the loop was
    late: pages then find them in the database at their next tick.
    """

    def __init__(self) -> None:
        self.reads = Reads()
        self.board = Board(self.reads)
        self.chats = Chats(self.reads, self.board)
        self.hints = Hints()
        self.renderer = Renderer(self.reads)
        self.looks = Looks(self.board, self.renderer)
        self.browsers = 0
        self.skipped = 0
        self._loop = asyncio.get_running_loop()
        self._changes: deque[ChatChange | CommandChange] = deque(maxlen=MAX_WAITING)
        self._armed = False

    def opened(self, more: int) -> None:
        """A page was opened (1) or left (-1)."""
        self.browsers += more
        self.looks.several = self.browsers > 1

    def on_commit(self, changes: Sequence[ChatChange | CommandChange]) -> None:
        """A hook of the writer, after each commit. Never blocks and never raises."""
        self.skipped += max(0, len(self._changes) + len(changes) - MAX_WAITING)
        self._changes.extend(changes)
        if self._armed:
            return
        self._armed = True
        try:
            self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:
            # The loop has been closed: nobody watches any more.
            self._changes.clear()

    def _drain(self) -> None:
        """On the loop. Disarmed first: a commit that comes now must call again."""
        self._armed = False
        changes = []
        while self._changes:
            changes.append(self._changes.popleft())
        if changes:
            self.hints.mark(self.board.note(changes))

    async def stop(self) -> None:
        await self.hints.stop()
        self.reads.stop()
