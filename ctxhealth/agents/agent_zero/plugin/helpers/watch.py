"""Where every hook comes in: whatever fails here is swallowed and counted, never raised.

An exception of an observer would lose a user's message and end the turn without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import builds, calls, life, messages, safe_points, turns
from .books import Station, runtime, station

Taker = Callable[[Station, Any, dict[str, Any]], None]

_TAKERS: dict[str, Taker] = {
    "agent_init": life.agent_made,
    "started": life.swept,
    "context_made": turns.context_made,
    "context_removed": turns.context_removed,
    "context_reset": turns.context_reset,
    "process_killed": turns.process_killed,
    "chain_begun": turns.chain_begun,
    "chain_ended": turns.chain_ended,
    "monologue_begun": turns.monologue_begun,
    "monologue_ended": turns.monologue_ended,
    "message_added": messages.message_added,
    "warning_added": messages.warning_added,
    "prompt_begun": builds.prompt_begun,
    "prompt_ended": builds.prompt_ended,
    "wait_ended": builds.wait_ended,
    "chat_call_begun": calls.chat_call_begun,
    "chat_call_ended": calls.chat_call_ended,
    "utility_begun": calls.utility_begun,
    "utility_ended": calls.utility_ended,
    "error_raised": turns.error_raised,
    "error_handled": turns.error_handled,
}
#: A failing hook is said when it failed this often, so that it fills no log.
_TOLD_AT = frozenset({1, 10, 100, 1_000})


def seen(point: str, agent: Any, kwargs: dict[str, Any]) -> None:
    """One extension point was passed. Never raises, never waits."""
    try:
        if runtime().owner is not life.OWNER:
            life.start()
        now = station()
        if now is not None:
            _TAKERS[point](now, agent, kwargs)
    except Exception as error:
        swallow(point, error)


async def passed(point: str, agent: Any) -> None:
    """A safe point of the agent's loop: what waits for it is carried out. Never raises."""
    try:
        now = station()
        if now is not None and agent is not None:
            if point == "before_wait":
                builds.before_wait(now, agent)
            await safe_points.pick_up(agent)
    except Exception as error:
        swallow(point, error)


def swallow(point: str, error: BaseException) -> None:
    """Count it, and say so now and then."""
    now = station()
    if now is None:
        return
    now.swallowed[point] += 1
    count = now.swallowed[point]
    if count in _TOLD_AT:
        text = f"the hook {point} failed: {type(error).__name__}: {error}"[:400]
        now.reporter.note(text, "warning", code="hook_failed", count=count)
