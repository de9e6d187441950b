"""Counting beside an event loop, with a limit on how long anybody waits."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from ctxhealth.tokens.counting import Count, count
from ctxhealth.tokens.estimate import estimate

_MOST_WAITING = 64


class CountingPool:
    """tiktoken lets other threads run while it counts. More than 64 waiting texts, or a text that
    takes longer than ``seconds``, get the estimate at once; the late result still fills the
    cache."""

    def __init__(self, threads: int = 1, seconds: float = 1.0) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="ctxhealth-count")
        self._seconds = seconds
        self._waiting = 0

    async def count(self, text: str, model: str | None = None) -> Count:
        """As ``tokens.count``, off the loop's thread. Never raises but when cancelled."""
        if not text:
            return Count(0, True)
        if self._waiting >= _MOST_WAITING:
            return Count(estimate(text), False)
        self._waiting += 1
        work = asyncio.get_running_loop().run_in_executor(self._threads, count, text, model)
        work.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.shield(work), self._seconds)
        except TimeoutError:
            return Count(estimate(text), False)

    def close(self) -> None:
        """Texts that wait are not counted any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _done(self, work: asyncio.Future[Count]) -> None:
        self._waiting -= 1
