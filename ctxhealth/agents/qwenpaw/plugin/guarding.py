"""The pre-send guard (a setting): a prompt that leaves no room for the answer is not sent.

QwenPaw looks at the limit only after a compaction, counts by bytes and leaves the declared output
cap out. This looks before every request, with the cap, and corrects the count by what the
provider billed for earlier requests.
"""

from __future__ import annotations

from typing import Any

from .attempts import Asked
from .facts import cap_of, reserve_of, window_of
from .forcing import compact
from .sdk import engine
from .watch import Watch


async def local_count(watch: Watch, agent: Any) -> int:
    """The agent's own count of the next prompt; the manager's, where it has just made it."""
    known = watch.known_count(agent.state.context)
    if known is not None:
        return known
    kwargs = await agent._prepare_model_input()
    tokens = int(await agent.model.count_tokens(**kwargs))
    watch.remember(agent.state.context, tokens)
    return tokens


async def check(watch: Watch, agent: Any) -> Any:
    """The engine's verdict after at most one forced compaction, or None without a window."""
    window = window_of(agent)
    if window is None:
        return None
    reserve, cap = reserve_of(window), cap_of(agent)
    guard = engine.Guard(window, reserve, watch.calibration)
    first = guard.check(await local_count(watch, agent), cap)
    if first.ok:
        return first
    problem = None
    try:
        await compact(agent, Asked("forced", without_model=True))
    except Exception as error:
        # Scroll refuses by its own limit; the recount below decides by ours.
        problem = f"{type(error).__name__}: {error}"
    again = guard.check(await local_count(watch, agent), cap)
    return engine.GuardResult(again.ok, again.limit, again.corrected, again.code, True, problem)


def refuse(watch: Watch, agent: Any, result: Any, unfit: Any) -> Exception:
    """Report the refusal; the error to raise, QwenPaw's own where it has one."""
    watch.chat.guard_refused(
        result.corrected, result.limit, window=window_of(agent),
        reserve=max(reserve_of(window_of(agent) or 0), cap_of(agent) or 0),
    )  # fmt: skip
    if unfit is not None:
        error: Exception = unfit(tokens=result.corrected, hard_limit=result.limit)
        return error
    return engine.ContextUnfit(result)
