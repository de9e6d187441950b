"""What a command does with an agent. Each function gives the work of one job."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import backups, pairs
from .attempts import Asked
from .blocks import blocks_of, is_memory, is_request
from .facts import manager_of
from .forcing import CannotForce, compact, live_tokens, tail_of
from .jobs import Job, Work
from .sdk import client
from .watch import Watch

if TYPE_CHECKING:
    from .desk import Desk


async def _saved(folder: Path, watch: Watch, context: Any, agent: Any) -> str:
    """The agent's whole state on the disk, before anything is changed."""
    state = agent.state_dict()
    at = int(time.time() * 1000)
    return await asyncio.to_thread(
        backups.save, folder, watch.key.id, context.id, state, at
    )  # fmt: skip


def fallback(desk: Desk, watch: Watch, context: Any) -> Work:
    """Evict and fold by rule, without a model call; what is evicted stays in the store."""

    async def run(agent: Any) -> dict[str, Any]:
        before = await live_tokens(agent)
        tail = _tail(agent, context.args, before)
        backup = await _saved(desk.backups, watch, context, agent)
        why = Asked("forced", context.id, backup, without_model=True)
        unfit = await _forced(agent, why, tail)
        after = await live_tokens(agent)
        done = dict(getattr(manager_of(agent), "last_compress", None) or {})
        if after >= before:
            raise client.Failed(_nothing(before, unfit))
        target = context.args.get("target")
        return {
            "before": before,
            "after": after,
            "backup": backup,
            "reason": _sentence(before, after, target, unfit),
            "detail": {key: value for key, value in done.items() if value},
        }

    return run


def _tail(agent: Any, args: dict[str, Any], prompt: int) -> int | None:
    """Tokens that stay untouched; None is the agent's own."""
    turns, target = args.get("keep_turns"), args.get("target")
    if isinstance(turns, int) and turns > 1:
        return tail_of(agent, turns, prompt)
    return int(target) if isinstance(target, (int, float)) and target > 0 else None


async def _forced(agent: Any, why: Asked, tail: int | None) -> str | None:
    """Run it; the refusal's text where the rest still does not fit. Raises Refused, Failed."""
    try:
        await compact(agent, why, tail)
    except CannotForce as error:
        raise client.Refused("unsupported", str(error)) from error
    except Exception as error:
        if hasattr(error, "hard_limit"):
            return str(error)
        raise client.Failed(f"{type(error).__name__}: {error}") from error
    return None


def _nothing(before: int, unfit: str | None) -> str:
    said = f"nothing to evict: {before:,} tokens are the prompt, the tools and the last turn"
    return f"{said}; {unfit}" if unfit else said


def _sentence(before: int, after: int, target: Any, unfit: str | None) -> str:
    said = f"{before:,} to {after:,} tokens without a model call"
    if unfit is not None:
        return f"{said}; it still does not fit: {unfit}"
    if isinstance(target, (int, float)) and after > target:
        return f"{said}; {target:,.0f} cannot be reached: prompt, tools and the last turn stay"
    return said


def summarize(desk: Desk, watch: Watch, context: Any) -> Work:
    """The agent's own compaction, now; its model writes the summary."""

    async def run(agent: Any) -> dict[str, Any]:
        before = await live_tokens(agent)
        backup = await _saved(desk.backups, watch, context, agent)
        unfit = await _forced(agent, Asked("manual", context.id, backup), None)
        after = await live_tokens(agent)
        if after >= before:
            raise client.Failed(_nothing(before, unfit))
        return {"before": before, "after": after, "backup": backup, "reason": unfit}

    return run


def clear(desk: Desk, watch: Watch, context: Any) -> Work:
    """The summary latch, and QwenPaw's mark that its last summary failed; each with what it was."""

    async def run(agent: Any) -> dict[str, Any]:
        manager = manager_of(agent)
        latch = watch.latch
        released: dict[str, Any] = {}
        if latch is not None and desk.home.latching.release(watch, context.id):
            released["summary_latch"] = latch.to_dict()
        if getattr(manager, "_summary_update_failed", False):
            manager._summary_update_failed = False
            released["summary_update_failed"] = True
        if not released:
            raise client.Refused("stale", "nothing was latched")
        return {"detail": released}

    return run


def snapshot(desk: Desk, watch: Watch) -> Work:
    async def run(agent: Any) -> dict[str, Any]:
        tokens = await live_tokens(agent)
        desk.home.snapshot(watch, agent, manager_of(agent))
        return {"detail": {"prompt": tokens, "messages": len(agent.state.context)}}

    return run


def repair(desk: Desk, watch: Watch, context: Any) -> Work:
    """Close calls without a result and drop results without a call.

    QwenPaw drops broken pairs itself whenever it loads a session; this does what it leaves.
    """

    async def run(agent: Any) -> dict[str, Any]:
        before = await live_tokens(agent)
        broken = pairs.broken(agent.state.context)
        if not broken.closed and not broken.dropped:
            return {"before": before, "after": before, "reason": "no broken pair was found"}
        backup = await _saved(desk.backups, watch, context, agent)
        pairs.repair(agent.state.context, broken, desk.home.binding.tool_result)
        desk.home.snapshot(watch, agent, manager_of(agent))
        after = await live_tokens(agent)
        detail = {"closed": sorted(broken.closed), "dropped": sorted(broken.dropped)}
        return {"before": before, "after": after, "backup": backup, "detail": detail}

    return run


def restore(desk: Desk, watch: Watch, context: Any) -> Work:
    """The state that was saved before a command; what it is now is saved first."""

    async def run(agent: Any) -> dict[str, Any]:
        command = str(context.args.get("command") or "")
        try:
            state = await asyncio.to_thread(backups.load, desk.backups, watch.key.id, command)
        except backups.NoBackup as error:
            raise client.Failed(str(error)) from error
        before = await live_tokens(agent)
        backup = await _saved(desk.backups, watch, context, agent)
        agent.load_state_dict(state)
        desk.home.snapshot(watch, agent, manager_of(agent))
        return {"before": before, "after": await live_tokens(agent), "backup": backup}

    return run


async def unanswered(agent: Any) -> dict[str, Any]:
    """Whether the last message waits for an answer."""
    context = [
        message
        for message in agent.state.context
        # A reply without any content answers nothing.
        if not is_memory(message) and (is_request(message) or blocks_of(message))
    ]
    waits = bool(context) and is_request(context[-1])
    return {"detail": "the last message" if waits else "a continuation"}


async def go_on(job: Job, agent: Any) -> dict[str, Any]:
    """Nothing is said where the last message is still unanswered: it is what gets answered."""
    result = await unanswered(agent)
    job.clears = result["detail"] == "the last message"
    return result
