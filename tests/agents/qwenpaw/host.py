"""A small QwenPaw: the shapes and the order of calls of the real one, without its weight.

It has the agent that is built for each turn, the manager that compacts before every step, the
phases of a turn, the saved session and the register of runs, as the published package has them.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any

LOGGER = "qwenpaw.agents.context.scroll.manager"
log = logging.getLogger(LOGGER)


class Phase(Enum):
    PRE_DISPATCH = 1
    POST_AGENT_BUILD = 2
    PRE_EXECUTE = 3
    POST_RESPONSE = 4
    FINALLY = 5


class Action(Enum):
    CONTINUE = 1
    SHORT_CIRCUIT = 2


@dataclass
class Result:
    action: Action = Action.CONTINUE
    payload: Any = None


class Hook:
    phase = Phase.FINALLY
    name = ""
    priority = 100


class Middleware:
    """The framework's base class: every method is optional."""


class Unfit(RuntimeError):
    def __init__(self, *, tokens: int, hard_limit: int) -> None:
        super().__init__(f"CONTEXT_UNFIT: {tokens} > {hard_limit}")
        self.tokens, self.hard_limit = tokens, hard_limit


@dataclass
class Block:
    type: str
    text: str = ""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    name: str | None = None
    input: str = ""
    output: Any = ""
    thinking: str = ""
    state: str = ""


def text(text: str) -> Block:
    return Block("text", text)


def result(id: str, name: str, output: str, state: str) -> Block:
    return Block("tool_result", id=id, name=name, output=output, state=state)


@dataclass
class Msg:
    name: str
    role: str
    content: list[Any]
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    finished_reason: Any = None


def user(said: str) -> Msg:
    return Msg("user", "user", [text(said)])


@dataclass
class ReplyEnd:
    finished_reason: str
    reply_id: str = "r"


@dataclass
class TextEvent:
    reply_id: str
    block_id: str
    delta: str = ""


@dataclass
class Config:
    trigger_ratio: float = 0.8
    reserve_ratio: float = 0.1

    def model_copy(self, update: dict[str, float]) -> Config:
        return Config(**{**self.__dict__, **update})


@dataclass
class Reply:
    """One answer of the model, or the exception it raises."""

    content: list[Any] = field(default_factory=list)
    usage: Any = None
    error: Exception | None = None
    finished_reason: str = "completed"
    is_last: bool = True


def says(said: str, prompt: int | None = 100) -> Reply:
    usage = None if prompt is None else SimpleNamespace(
        input_tokens=prompt, output_tokens=5, cache_input_tokens=0, cache_creation_input_tokens=0
    )  # fmt: skip
    return Reply([text(said)] if said else [], usage)


class Model:
    """Answers from ``replies``; summaries from ``summaries`` (a text or an exception)."""

    def __init__(self, window: int) -> None:
        self.model, self.model_key, self.context_size = "fake-1", "prov:fake-1", window
        self.parameters = SimpleNamespace(max_tokens=None)
        self.replies: list[Reply] = []
        self.summaries: list[Any] = []
        self.asked: list[list[Msg]] = []
        self.summarized = 0

    async def count_tokens(self, messages: list[Msg], tools: Any) -> int:
        said = "".join(
            block.text + block.input + str(block.output) for m in messages for block in m.content
        )
        return int(len(said) / 4 + 0.5)

    async def __call__(self, messages: list[Msg], **given: Any) -> Any:
        if given.get("disable_thinking"):
            self.summarized += 1
            found = self.summaries.pop(0) if self.summaries else "a summary"
            if isinstance(found, Exception):
                raise found
            return says(found, 40)
        self.asked.append(messages)
        reply = self.replies.pop(0) if self.replies else says("fine")
        if reply.error is not None:
            raise reply.error
        return self._stream(reply)

    async def _stream(self, reply: Reply) -> AsyncGenerator[Reply, None]:
        yield Reply(reply.content[:1], is_last=False)
        yield reply


@dataclass
class Request:
    """What starts a turn without a channel."""

    input: list[Any]
    session_id: str
    user_id: str
    channel: str
    stream: bool = True
    ctxhealth_job: str | None = None


class Store:
    broken = False

    def note_write_failure(self, error: Exception) -> None:
        self.failures = getattr(self, "failures", 0) + 1


class Manager:
    """Evicts all turns but the active one once the prompt is above the trigger."""

    def __init__(self, session: str) -> None:
        self._session_id, self._agent_id = session, "default"
        self._history = Store()
        self._continuation_summary: str | None = None
        self._summary_update_failed = False
        self._seen_tool_result_ids: set[str] = set()
        self.spans: int = 0
        self._index = SimpleNamespace(to_dict=lambda: {"tiers": [[{}] * self.spans]})
        self.last_compress: dict[str, int] = {}

    async def compress(
        self, agent: Any, context_config: Any = None, instructions: Any = None
    ) -> None:
        config = context_config or agent.context_config
        self.last_compress = {"evicted": 0, "pre_folded": 0, "live_folded": 0, "active_folded": 0}
        if agent.world.broken:
            await asyncio.to_thread(self._history.note_write_failure, OSError("disk full"))
            await self._live_tokens(agent)
            log.info("scroll: compact timing outcome=%s total=%.1fms %s", "persist_failed", 1, "")
            return
        tokens = await self._live_tokens(agent)
        window = agent.model.context_size
        if not tokens > config.trigger_ratio * window:
            log.info(
                "scroll: compact timing outcome=%s total=%.1fms %s", "at_or_below_trigger", 1, ""
            )
            return
        at = max(
            i for i, m in enumerate(agent.state.context) if m.role == "user" and not m.metadata
        )
        middle, tail = agent.state.context[:at], agent.state.context[at:]
        if middle:
            await self._update_continuation_summary(agent, middle, focus_hint="")
            self.spans += 1
            memory = Msg("memory", "user", [text("earlier")], {"qwenpaw_tag": "scroll_memory"})
            agent.state.context = [memory, *tail]
            self.last_compress["evicted"] = len(middle)
            tokens = await self._live_tokens(agent)
        limit = window - min(4096, max(1, int(window * 0.05)))
        outcome = "unfit" if tokens > limit else agent.world.word
        log.info("scroll: compact timing outcome=%s total=%.1fms %s", outcome, 1, "")
        if outcome == "unfit":
            raise Unfit(tokens=tokens, hard_limit=limit)

    async def _update_continuation_summary(
        self, agent: Agent, middle: list[Msg], *, focus_hint: str = ""
    ) -> None:
        try:
            found = await self._generate_plain_summary(agent, "sum up", max_tokens=256)
        except Exception:
            found = ""
        self._summary_update_failed = not found
        if found:
            self._continuation_summary = found

    async def _generate_plain_summary(self, agent: Any, prompt: str, *, max_tokens: int) -> str:
        response = await agent.model([user(prompt)], max_tokens=max_tokens, disable_thinking=True)
        return str(response.content[0].text if response.content else "")

    @staticmethod
    async def _count_model_input_tokens(agent: Agent, kwargs: dict[str, Any]) -> int:
        return int(await agent.model.count_tokens(**kwargs))

    async def _live_tokens(self, agent: Agent) -> int:
        return await self._count_model_input_tokens(agent, await agent._prepare_model_input())

    async def recover_from_context_overflow(self, agent: Agent) -> bool:
        forced = agent.context_config.model_copy({"trigger_ratio": 1e-6})
        await self.compress(agent, forced)
        return bool(self.last_compress["evicted"])


class Agent:
    """Built for one turn."""

    def __init__(self, world: Any, context: dict[str, str], saved: dict[str, Any] | None) -> None:
        self.world, self._request_context = world, context
        self.model, self.context_config = world.model, Config()
        scroll = not world.native
        self._context_manager = Manager(context["session_id"]) if scroll else None
        self.state = SimpleNamespace(context=[])
        self.middlewares: list[Any] = []
        if saved is not None:
            self.load_state_dict(saved)

    def state_dict(self) -> dict[str, Any]:
        manager = self._context_manager
        context = [
            {**m.__dict__, "content": [dict(b.__dict__) for b in m.content]}
            for m in self.state.context
        ]
        flags = {} if manager is None else {
            "failed": manager._summary_update_failed, "spans": manager.spans,
            "summary": manager._continuation_summary,
        }  # fmt: skip
        return copy.deepcopy({"state": {"context": context}, "scroll": flags})

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.state.context = [
            Msg(**{**m, "content": [Block(**b) for b in m["content"]]})
            for m in copy.deepcopy(saved["state"]["context"])
        ]
        manager, flags = self._context_manager, saved["scroll"]
        if manager is not None and flags:
            manager._summary_update_failed, manager.spans = flags["failed"], flags["spans"]
            manager._continuation_summary = flags["summary"]

    async def _prepare_model_input(self) -> dict[str, Any]:
        system = Msg("system", "system", [text(self.world.system)])
        return {"messages": [system, *self.state.context], "tools": []}

    def _save_to_context(self, blocks: list[Any]) -> None:
        self.state.context.append(Msg("agent", "assistant", list(blocks)))

    async def reply(self, said: list[Msg]) -> AsyncGenerator[Any, None]:
        self.state.context.extend(said)
        escaped = False
        while not escaped:
            async for item in self._chain("on_reply", self._reply, {}):
                escaped = escaped or isinstance(item, ReplyEnd)
                yield item

    async def _reply(self) -> AsyncGenerator[Any, None]:
        for _ in range(8):
            await self._coroutine("on_compress_context", self._compress, {})
            content = await self._ask()
            if content:
                self._save_to_context(content)
            calls = [block for block in content if block.type == "tool_call"]
            if not calls:
                break
            self.state.context[-1].content += [
                result(call.id, call.name or "", self.world.tool_output, "done") for call in calls
            ]
        yield ReplyEnd("completed")
        yield Msg("agent", "assistant", content)

    async def _compress(self, **_: Any) -> None:
        if self._context_manager is not None:
            await self._context_manager.compress(self)
        elif len(self.state.context) > 2:
            # The native strategy: older messages give way to a summary beside the context.
            self.state.context = self.state.context[2:]

    async def _ask(self) -> list[Any]:
        content: list[Any] = []
        try:
            response = await self._call()
            async for chunk in response:
                content = chunk.content if chunk.is_last else content
        except Exception as error:
            manager = self._context_manager
            if getattr(error, "status_code", 0) != 400 or manager is None:
                raise
            if not await manager.recover_from_context_overflow(self):
                raise
            async for chunk in await self._call():
                content = chunk.content if chunk.is_last else content
        return content

    async def _call(self) -> Any:
        kwargs = {**await self._prepare_model_input(), "current_model": self.model}

        async def model(**given: Any) -> Any:
            return await self.model(given["messages"])

        return await self._coroutine("on_model_call", model, kwargs)

    def _having(self, name: str) -> list[Any]:
        return [mw for mw in self.middlewares if hasattr(mw, name)]

    async def _coroutine(self, name: str, last: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        chain = self._having(name)

        async def at(index: int, given: dict[str, Any]) -> Any:
            if index == len(chain):
                return await last(**given)

            async def following(**more: Any) -> Any:
                return await at(index + 1, {**given, **more})

            return await getattr(chain[index], name)(
                agent=self, input_kwargs=given, next_handler=following
            )

        return await at(0, kwargs)

    async def _chain(
        self, name: str, last: Callable[..., Any], kwargs: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        chain = self._having(name)

        async def at(index: int) -> AsyncGenerator[Any, None]:
            if index == len(chain):
                async for item in last():
                    yield item
                return

            async def following(**_: Any) -> AsyncGenerator[Any, None]:
                async for item in at(index + 1):
                    yield item

            async for item in getattr(chain[index], name)(
                agent=self, input_kwargs=kwargs, next_handler=following
            ):
                yield item

        async for item in at(0):
            yield item
