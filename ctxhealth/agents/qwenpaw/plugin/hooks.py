"""What QwenPaw calls: a middleware for every turn's agent and hooks at the turn's phases.

QwenPaw does not swallow what a hook raises; each one here does, except what belongs to the turn.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from . import guarding
from .attempts import native_context
from .calls import Call, followed
from .replying import Replies, ends_reply
from .watch import Watch

if TYPE_CHECKING:
    from .integration import Integration

Next = Callable[..., Any]


class Watching:
    """The middleware's methods; ``made`` joins them with the framework's base class."""

    def __init__(self, home: Integration) -> None:
        self.home = home

    async def on_reply(
        self, agent: Any, input_kwargs: Any, next_handler: Next
    ) -> AsyncGenerator[Any, None]:
        home = self.home
        watch = home.care.run("reply", lambda: home.watch_of(agent))
        async with aclosing(next_handler(**(input_kwargs or {}))) as items:
            if watch is None or not home.settings.empty_replies or not home.binding.can_talk:
                async for item in items:
                    home.care.run("reply", lambda item=item: _ended(watch, item))  # type: ignore[misc]
                    yield item
                return
            replies = Replies(watch, agent, home.binding, home.care)
            async for item in items:
                _ended(watch, item)
                if ends_reply(home.binding, item):
                    if await _again(replies):
                        continue
                    if replies.warning is not None:
                        async for event in replies.shown(item):
                            yield event
                yield replies.worded(item)

    async def on_compress_context(
        self, agent: Any, input_kwargs: Any, next_handler: Callable[..., Awaitable[None]]
    ) -> None:
        home = self.home
        watch = home.care.run("step", lambda: home.step(agent))
        if watch is not None:
            for job in watch.take():
                await job.execute(agent)
        held = home.care.run("step", lambda: native_context(agent))
        begun = time.monotonic()
        await next_handler(**(input_kwargs or {}))
        if watch is None:
            return
        if held is not None:
            home.care.run("step", lambda: home.compacted_natively(watch, held, agent, begun))
        if home.settings.guard:
            await self._guard(watch, agent)

    async def _guard(self, watch: Watch, agent: Any) -> None:
        try:
            result = await guarding.check(watch, agent)
        except Exception as error:
            self.home.care.failed("guard", error)
            return
        if result is not None and not result.ok:
            raise guarding.refuse(watch, agent, result, self.home.binding.unfit)

    async def on_model_call(
        self, agent: Any, input_kwargs: Any, next_handler: Callable[..., Awaitable[Any]]
    ) -> Any:
        home = self.home
        call = await _call(home, agent, input_kwargs or {})
        try:
            response = await next_handler(**(input_kwargs or {}))
        except BaseException as error:
            if call is not None:
                problem = error
                home.care.run("model call", lambda: call.failed(problem))
            raise
        if call is None:
            return response
        if hasattr(response, "__anext__"):
            return followed(response, call, home.care)
        home.care.run("model call", lambda: call.replied(response))
        return response


async def _call(home: Integration, agent: Any, kwargs: dict[str, Any]) -> Call | None:
    try:
        watch = home.watch_of(agent)
        if watch is None:
            return None
        home.note_prompt(watch, kwargs)
        model = kwargs.get("current_model") or agent.model
        local = watch.known_count(agent.state.context)
        if local is None:
            local = int(await model.count_tokens(kwargs["messages"], kwargs.get("tools")))
        return Call(watch, agent, model, local)
    except Exception as error:
        home.care.failed("model call", error)
        return None


async def _again(replies: Replies) -> bool:
    try:
        return await replies.again()
    except Exception as error:
        replies.care.failed("empty-reply fallback", error)
        return False


def _ended(watch: Watch | None, item: Any) -> None:
    """The agent gave up by its own rule: no step is left."""
    reason = getattr(item, "finished_reason", None)
    if watch is None or reason is None or not hasattr(item, "reply_id"):
        return
    if str(getattr(reason, "value", reason)) == "exceed_max_iters":
        if watch.turn is not None:
            watch.turn.outcome = "stopped"
        watch.chat.agent_stopped("the limit of steps for one turn is reached")


def middleware(base: Any, home: Integration) -> Any:
    """An instance of the framework's middleware class that watches."""
    made = type("CtxhealthMiddleware", (Watching, base), {})
    return made(home)


def phase_hook(base: Any, name: str, phase: Any, priority: int, run: Any) -> Any:
    """A lifecycle hook whose ``run`` is ``run(ctx)``."""

    async def at_phase(self: Any, ctx: Any) -> Any:
        return await run(ctx)

    fields = {"phase": phase, "name": f"ctxhealth_{name}", "priority": priority, "run": at_phase}
    return type("CtxhealthHook", (base,), fields)()
