"""Counting beside an event loop, with a limit on how long anybody waits."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ctxhealth.tokens.counting import Count, count
from ctxhealth.tokens.estimate import estimate

_MOST_WAITING = 64


def count_each(
    texts: Sequence[tuple[str, str | None]], seconds: float, done: list[Count]
) -> list[Count]:
    """Count each (text, model) into ``done``; from ``seconds`` on what is left is estimated."""
    until = time.monotonic() + seconds
    for text, model in texts:
        late = time.monotonic() >= until
        done.append(Count(estimate(text), False) if late else count(text, model))
    return done


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

    async def all(self, texts: Sequence[tuple[str, str | None]]) -> list[Count]:
        """The counts of many (text, model) in one turn of the thread, within the same limit."""
        if self._waiting >= _MOST_WAITING:
            return [Count(estimate(text), False) for text, _ in texts]
        done: list[Count] = []
        self._waiting += 1
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, count_each, texts, self._seconds, done)
        work.add_done_callback(self._done)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(work), self._seconds)
        ready = done[: len(texts)]
        return ready + [Count(estimate(text), False) for text, _ in texts[len(ready) :]]

    def close(self) -> None:
        """Texts that wait are not counted any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _done(self, work: asyncio.Future[Any]) -> None:
        self._waiting -= 1
