"""Named event loops in threads of their own, and tasks on them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, ClassVar


class EventLoopThread:
    _made: ClassVar[dict[str, EventLoopThread]] = {}
    _lock = threading.Lock()

    def __new__(cls, thread_name: str = "Background") -> EventLoopThread:
        with cls._lock:
            if thread_name not in cls._made:
                one = super().__new__(cls)
                one.loop = asyncio.new_event_loop()
                one.thread = threading.Thread(
                    target=one.loop.run_forever, name=thread_name, daemon=True
                )
                one.thread.start()
                cls._made[thread_name] = one
            return cls._made[thread_name]

    loop: asyncio.AbstractEventLoop
    thread: threading.Thread

    def run_coroutine(self, coroutine: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)


class DeferredTask:
    def __init__(self, thread_name: str = "Background") -> None:
        self.event_loop_thread = EventLoopThread(thread_name)
        self._future: Future[Any] | None = None

    def start_task(self, func: Callable[..., Any], *args: Any) -> DeferredTask:
        self._future = self.event_loop_thread.run_coroutine(func(*args))
        return self

    def is_ready(self) -> bool:
        return bool(self._future and self._future.done())

    def is_alive(self) -> bool:
        return bool(self._future and not self._future.done())

    def kill(self) -> None:
        if self._future is not None:
            self._future.cancel()

    def result_sync(self, timeout: float | None = None) -> Any:
        assert self._future is not None
        return self._future.result(timeout)

    async def result(self) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, self._waited)

    def _waited(self) -> Any:
        assert self._future is not None
        try:
            return self._future.result()
        except CancelledError as error:
            raise RuntimeError("the awaited task was cancelled") from error
