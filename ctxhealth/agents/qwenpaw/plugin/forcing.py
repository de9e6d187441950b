"""Compaction at somebody's word, on the manager itself.

The middlewares are passed by: one of them would call a model for the long-term memory.
"""

from __future__ import annotations

from typing import Any

from . import attempts
from .attempts import Asked
from .facts import manager_of, window_of
from .structure import structure_of

#: Any prompt is above it.
FORCED_RATIO = 1e-6
_MOST_TAIL = 40_000


class CannotForce(Exception):
    """This version or strategy has nothing to force, in one sentence."""


def forced_config(agent: Any, tail: int | None = None) -> Any:
    """The agent's own limits with the trigger at the ground; ``tail`` tokens stay untouched."""
    config, window = getattr(agent, "context_config", None), window_of(agent)
    copy = getattr(config, "model_copy", None)
    if not callable(copy):
        raise CannotForce("this version's compaction settings cannot be changed for one run")
    update: dict[str, float] = {"trigger_ratio": FORCED_RATIO}
    if tail is not None and window:
        update["reserve_ratio"] = min(tail, _MOST_TAIL) / window
    return copy(update=update)


async def compact(agent: Any, why: Asked, tail: int | None = None) -> None:
    """Run the manager now. Raises CannotForce, and what the manager raises."""
    manager = manager_of(agent)
    run = getattr(manager, "compress", None)
    if not callable(run):
        raise CannotForce("the native strategy has no compaction without a model call")
    config = forced_config(agent, tail)
    token = attempts.asked.set(why)
    try:
        await run(agent, config)
    finally:
        attempts.asked.reset(token)


async def live_tokens(agent: Any) -> int:
    """The next prompt by the agent's own count."""
    count = getattr(manager_of(agent), "_live_tokens", None)
    if callable(count):
        return int(await count(agent))
    return int(await agent.model.count_tokens(**await agent._prepare_model_input()))


def tail_of(agent: Any, turns: int, prompt: int) -> int:
    """Tokens of the newest ``turns`` turns with everything that stands beside the history."""
    found = structure_of(agent.state.context)
    beside = max(0, prompt - found.tokens)
    return beside + sum(topic.tokens for topic in found.topics[-turns:])
