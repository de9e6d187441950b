"""Where a command may change a history: between two steps of its own loop, or while it is idle.

While a turn runs, a command is left in the agent's data and taken by the next hook in its loop,
which waits for it: nothing else touches that history meanwhile. While none runs, the change is one
function on the loop of all turns, so no turn can begin under it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from ctxhealth.client import CommandContext, Failed

from . import host, loops, passes

_SLOT = "_ctxhealth_command"
_CHANGE_S = 120.0


class Work:
    """``prepare`` in any thread while the agent stands still, ``change`` on its loop, short."""

    def __init__(self, prepare: Callable[[], None], change: Callable[[], Any]) -> None:
        self.prepare, self.change = prepare, change


class _Ticket:
    """Work left for a running turn. Taken by its loop or dropped by us, never both."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.done = threading.Event()
        self.taken = False
        self.result: Any = None
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._dropped = False

    def take(self) -> bool:
        with self._lock:
            self.taken = not self._dropped
        return self.taken

    def drop(self) -> bool:
        """False where the loop took it already."""
        with self._lock:
            self._dropped = not self.taken
        return self._dropped


async def pick_up(agent: Any) -> None:
    """In the agent's own loop: carry out what was left for it."""
    ticket = agent.data.pop(_SLOT, None)
    if not isinstance(ticket, _Ticket) or not ticket.take():
        return
    try:
        await asyncio.get_running_loop().run_in_executor(None, ticket.work.prepare)
        ticket.result = ticket.work.change()
    except asyncio.CancelledError:
        ticket.error = Failed("the turn was stopped under the command; nothing was changed")
        raise
    except Exception as error:
        ticket.error = error
    finally:
        ticket.done.set()


def carry_out(command: CommandContext, context: Any, agent: Any, work: Work) -> Any:
    """Do the work at the next safe point; waits visibly, can be cancelled until it starts."""
    while True:
        command.check()
        if host.is_running(context):
            done, result = _in_turn(command, context, agent, work)
        else:
            done, result = _at_rest(command, context, agent, work)
        if done:
            return result


def _in_turn(command: CommandContext, context: Any, agent: Any, work: Work) -> tuple[bool, Any]:
    ticket = _Ticket(work)
    agent.data[_SLOT] = ticket
    try:
        command.wait_until(
            lambda: ticket.taken or not host.is_running(context), _why(context, agent), 0.05
        )
    finally:
        dropped = ticket.drop()
        if dropped and agent.data.get(_SLOT) is ticket:
            agent.data.pop(_SLOT, None)
    if dropped:
        return False, None
    if not ticket.done.wait(_CHANGE_S):
        raise Failed("the agent's loop took the command and did not come back")
    if ticket.error is not None:
        raise ticket.error
    return True, ticket.result


def _at_rest(command: CommandContext, context: Any, agent: Any, work: Work) -> tuple[bool, Any]:
    work.prepare()
    command.wait_until(lambda: not passes.is_busy(agent.history), "a compression pass", 0.05)

    return change_at_rest(context, agent, work.change)


def change_at_rest(context: Any, agent: Any, change: Callable[[], Any]) -> tuple[bool, Any]:
    """(True, what ``change`` gave) on the loop of the turns; (False, None) where one came between.

    Its turn must take the work then; or it is over already and has left a background pass, which
    must be ended first.
    """

    def alone() -> tuple[bool, Any]:
        if host.is_running(context) or _is_passing(agent):
            return False, None
        return True, change()

    return loops.run_on(host.TURNS, alone)


def _is_passing(agent: Any) -> bool:
    task = agent.data.get(host.TASK)
    return passes.is_busy(agent.history) or (task is not None and not task.is_ready())


def _why(context: Any, agent: Any) -> str:
    if getattr(context, "paused", False):
        return "the chat is paused: continue it, or cancel"
    if passes.is_busy(agent.history):
        return "a compression pass; if it never ends, Rescue does"
    return "the running turn's next step"
