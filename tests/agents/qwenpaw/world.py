"""The small QwenPaw's workspace: sessions, phases of a turn, register of runs, a plugin's api."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

from tests.agents.qwenpaw.host import Action, Agent, Model, Msg, Phase, Result, user


class Tracker:
    """The register of runs: one per chat at a time."""

    def __init__(self) -> None:
        self.runs: dict[str, asyncio.Task[None]] = {}

    async def attach_or_start(
        self, name: str, payload: Any, source: Any, owner: Any = None
    ) -> tuple[Any, bool]:
        running = self.runs.get(name)
        if running is not None and not running.done():
            return None, False

        async def run() -> None:
            async for _ in source(payload):
                pass

        self.runs[name] = asyncio.create_task(run())
        return self.runs[name], True

    async def detach_subscriber(self, name: str, queue: Any) -> None:
        return None

    async def stream_from_queue(self, queue: Any, name: str) -> AsyncGenerator[str, None]:
        await asyncio.wait({queue})
        for _ in ():
            yield ""

    async def request_stop(self, name: str, reason: str = "user") -> bool:
        task = self.runs.get(name)
        return bool(task is not None and task.cancel(reason))


class World:
    """One workspace with its agent, model, sessions and hooks, and the api of a plugin."""

    agent_id = "default"

    def __init__(self, window: int = 1_000, system: str = "s" * 400) -> None:
        self.model, self.system, self.tool_output = Model(window), system, "out"
        self.broken = self.native = False
        self.word = "done"
        self.saved: dict[str, dict[str, Any]] = {}
        self.hooks: dict[Phase, list[Any]] = {phase: [] for phase in Phase}
        self.factories: list[Any] = []
        self.started: list[Any] = []
        self.stopped: list[Any] = []
        self.undone: list[Any] = []
        self.config: dict[str, Any] = {}
        self.task_tracker = Tracker()
        self.names: dict[str, str] = {}
        self.chat_manager = SimpleNamespace(
            get_chat_id_by_session=self._chat_id, get_chat=self._chat
        )
        self.channel_manager = SimpleNamespace(get_channel=self._no_channel)

    async def _chat_id(self, session: str, channel: str, user_id: str) -> str:
        return f"chat-{session}"

    async def _chat(self, id: str) -> Any:
        return SimpleNamespace(name=f"Title of {id}")

    async def _no_channel(self, name: str) -> Any:
        return None

    # -- the plugin's api

    def register_startup_hook(self, name: str, run: Any, priority: int = 100) -> None:
        self.started.append(run)

    def register_shutdown_hook(self, name: str, run: Any, priority: int = 100) -> None:
        self.stopped.append(run)

    def register_uninstall_hook(self, name: str, run: Any, priority: int = 100) -> None:
        self.undone.append(run)

    def register_middleware(self, factory: Any, *, priority: int = 100) -> None:
        self.factories.append(factory)

    def register_runtime_hook(self, hook: Any) -> None:
        self.hooks[hook.phase].append(hook)

    def _get_all_workspaces(self) -> list[Any]:
        return [self]

    # -- turns

    async def stream_query(self, request: Any) -> AsyncGenerator[Any, None]:
        said = [user(part["text"]) for message in request.input for part in message["content"]]
        async for item in self.turn(request.session_id, said, request):
            yield item

    def say(self, session: str, said: str) -> asyncio.Task[list[Any]]:
        """A user's turn as the console starts it: registered, and what it shows."""
        shown: list[Any] = []

        async def source(_: Any) -> AsyncGenerator[str, None]:
            async for item in self.turn(session, [user(said)]):
                shown.append(item)
                yield ""

        async def run() -> list[Any]:
            task, fresh = await self.task_tracker.attach_or_start(f"chat-{session}", None, source)
            assert fresh
            await task
            return shown

        return asyncio.create_task(run())

    async def turn(
        self, session: str, said: list[Msg], request: Any = None, root: str | None = None
    ) -> AsyncGenerator[Any, None]:
        request = request or SimpleNamespace(user_id="u1", channel="console")
        ctx = SimpleNamespace(
            session_id=session, agent_id="default", root_session_id=root or session,
            root_agent_id="default", request=request, workspace=self, agent=None, error=None,
            input_msgs=said,
        )  # fmt: skip
        try:
            await self._run(Phase.PRE_DISPATCH, ctx)
            ctx.agent = self._build(session)
            for factory in self.factories:
                made = factory(ctx, None)
                ctx.agent.middlewares += [made] if made is not None else []
            await self._run(Phase.POST_AGENT_BUILD, ctx)
            found = await self._run(Phase.PRE_EXECUTE, ctx)
            if found.action is Action.SHORT_CIRCUIT:
                yield found.payload
            else:
                async for item in ctx.agent.reply(ctx.input_msgs):
                    yield item
            await self._run(Phase.POST_RESPONSE, ctx)
        except BaseException as error:
            ctx.error = error
            raise
        finally:
            if ctx.agent is not None:
                self.saved[session] = ctx.agent.state_dict()
            await self._run(Phase.FINALLY, ctx)

    def _build(self, session: str) -> Agent:
        context = {"session_id": session, "agent_id": "default"}
        return Agent(self, context, self.saved.get(session))

    async def _run(self, phase: Phase, ctx: Any) -> Result:
        for hook in sorted(self.hooks[phase], key=lambda hook: int(hook.priority)):
            found: Result = await hook.run(ctx)
            if found.action is Action.SHORT_CIRCUIT:
                return found
        return Result()

    def context(self, session: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.saved[session]["state"]["context"]
        return found
