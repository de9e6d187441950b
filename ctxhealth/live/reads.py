"""Threads for what must not run on the event loop: queries and rendering.

Consumers never use Django's shared thread: one slow query there would stall every socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

T = TypeVar("T")

QUERY_THREADS = 4


class Reads:
    """A pool for queries and one thread for rendering, so that N browsers share one render."""

    def __init__(self, query_threads: int = QUERY_THREADS) -> None:
        self._queries = ThreadPoolExecutor(query_threads, "ctx-live-read")
        self._renders = ThreadPoolExecutor(1, "ctx-live-render")

    async def query(self, fn: Callable[[], T]) -> T:
        """Run ``fn`` on a reading thread; its database connection is given back afterwards."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._queries, _with_connections_returned, fn)

    async def render(self, fn: Callable[[], T]) -> T:
        """Run ``fn``, which must not query, on the one rendering thread."""
        return await asyncio.get_running_loop().run_in_executor(self._renders, fn)

    def stop(self) -> None:
        self._queries.shutdown(wait=True, cancel_futures=True)
        self._renders.shutdown(wait=True, cancel_futures=True)


def _with_connections_returned(fn: Callable[[], T]) -> T:
    """SQLite connections stay open with their thread (1 ms to open); pooled ones go back."""
    try:
        return fn()
    finally:
        for connection in connections.all(initialized_only=True):
            if connection.vendor != "sqlite" or connection.errors_occurred:
                connection.close()
