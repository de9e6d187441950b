"""Time for chats: a tick in the log of each chat whose deadline passed, an end for late commands.

What time alone brings about stands in the log like everything else, so that a replay gives it
again. Idle healthy chats have no deadline and cost nothing.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from django.db import DatabaseError, connection

from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.store.through import StoreBusy, acall

EVERY_S = 1.0
_LOG = logging.getLogger(__name__)


class Ticker:
    """Once a second, on the loop it was started on."""

    def __init__(self) -> None:
        self.ticks = 0
        self.rounds = 0
        self._task: asyncio.Task[None] | None = None
        self._reader = ThreadPoolExecutor(1, "ctxhealth-ticker")

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._reader.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.round()
            except (StoreBusy, DatabaseError):
                continue
            except Exception:
                _LOG.exception("a round of the ticker failed")

    async def round(self) -> None:
        """Look once; writes only where something is due."""
        self.rounds += 1
        loop = asyncio.get_running_loop()
        chats, commands = await loop.run_in_executor(self._reader, _due, now_ms())
        while chats > 0:
            done = await acall(writes.chats_tick)
            self.ticks += done
            chats = chats - done if done else 0
        if commands:
            await acall(writes.command_expire_due)


def _due(now: int) -> tuple[int, bool]:
    try:
        return queries.chats_due(now), queries.commands_due(now)
    finally:
        connection.close()
