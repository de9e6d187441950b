"""The agent's two event loops: run there, and be sure that nothing there is under way.

All turns of all chats share one loop, compression in the background has another. Waiting for them
is done in a thread of ours, never in one of theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from . import host

T = TypeVar("T")
_BARRIER_S = 3.0
_ROUND_S = 0.05


def run_on(loop: str, act: Callable[[], T], timeout: float = 10.0) -> T:
    """Run one synchronous function on a loop of the agent and give back what it does.

    It has the loop for itself from start to end, so it must be short.
    """

    async def alone() -> T:
        return act()

    result: T = _loop(loop).run_coroutine(alone()).result(timeout)
    return result


def barrier(loop: str) -> None:
    """Return once everything that was cancelled on that loop has come to its end."""
    _loop(loop).run_coroutine(asyncio.sleep(_ROUND_S)).result(_BARRIER_S)


def end_background(agent: Any) -> bool:
    """End the agent's background pass, if one runs. True where one was there.

    A cancelled task says at once that it is done, its coroutine unwinds later: the barrier is the
    proof. Without it messages were lost and doubled, for the pass deletes topics by position.
    """
    task = agent.data.get(host.TASK)
    if task is None:
        return False
    task.kill()
    # Before the barrier: a turn that begins meanwhile must not wait for the killed pass.
    agent.data[host.TASK] = None
    barrier(host.BACKGROUND)
    return True


def _loop(name: str) -> Any:
    return host.attribute("helpers.defer", "EventLoopThread")(name)


def soon_on(loop: str, act: Callable[[], None]) -> None:
    """As ``run_on``, without waiting for it."""

    async def alone() -> None:
        act()

    _loop(loop).run_coroutine(alone())
