"""Contexts, agents and the loop of a turn, with the points that the plugin listens at."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable
from enum import Enum
from types import SimpleNamespace
from typing import Any, ClassVar

from helpers import extension, history, persist_chat
from helpers.defer import DeferredTask
from helpers.errors import HandledException

SYSTEM = "You answer questions. " * 100
#: What the models do: tests set these. May be coroutine functions.
MODELS: dict[str, Callable[..., Any]] = {}
#: The older line waits for ever where a pass frees nothing, and tells no usage.
LINE = {"gives_up": True, "usage": True, "unusable_limit": 3}
PROMPTS = {
    "fw.msg_misformat.md": "That was no valid message.",
    "fw.msg_repeat.md": "You said the same again.",
    "fw.topic_summary.sys.md": "Summarise this.",
    "fw.msg_nudge.md": "Go on.",
}
TASK = "_organize_history_task"


class AgentContextType(Enum):
    USER = "user"
    BACKGROUND = "background"


class LoopData:
    def __init__(self) -> None:
        self.iteration = -1
        self.system: list[str] = []
        self.last_response = ""
        self.params_persistent: dict[str, Any] = {}


class Log:
    def __init__(self) -> None:
        self.logs: list[Any] = []

    def log(self, type: str, heading: str = "", content: str = "") -> None:
        self.logs.append(SimpleNamespace(type=type, heading=heading, content=content))


class UserMessage:
    def __init__(self, message: str, id: str = "") -> None:
        self.message, self.id = message, id


class AgentContext:
    _contexts: ClassVar[dict[str, AgentContext]] = {}
    _lock = threading.RLock()

    @extension.extensible
    def __init__(self, id: str, type: AgentContextType = AgentContextType.USER) -> None:
        self.id, self.type, self.name = id, type, None
        with AgentContext._lock:
            AgentContext._contexts[id] = self
        self.log, self.paused = Log(), False
        self.task: DeferredTask | None = None
        self.config = SimpleNamespace(profile="default")
        self.agent0 = Agent(0, self)

    @staticmethod
    def get(id: str) -> AgentContext | None:
        return AgentContext._contexts.get(id)

    @staticmethod
    def all() -> list[AgentContext]:
        return list(AgentContext._contexts.values())

    @staticmethod
    @extension.extensible
    def remove(id: str) -> AgentContext | None:
        return AgentContext._contexts.pop(id, None)

    @extension.extensible
    def kill_process(self) -> None:
        if self.task:
            self.task.kill()

    @extension.extensible
    def reset(self) -> None:
        self.kill_process()
        self.log, self.paused = Log(), False
        self.agent0 = Agent(0, self)

    @extension.extensible
    def nudge(self) -> Any:
        self.kill_process()
        self.paused = False
        return self.communicate(UserMessage(PROMPTS["fw.msg_nudge.md"]))

    @extension.extensible
    def communicate(self, message: UserMessage) -> Any:
        self.task = DeferredTask("AgentContext").start_task(
            self._process_chain, self.agent0, message
        )
        return self.task

    def is_running(self) -> bool:
        return bool(self.task and self.task.is_alive())

    @extension.extensible
    async def _process_chain(self, agent: Agent, message: UserMessage, user: bool = True) -> Any:
        agent.hist_add_user_message(message)
        return await agent.monologue()


class Agent:
    def __init__(self, number: int, context: AgentContext) -> None:
        self.number, self.context = number, context
        self.config = SimpleNamespace(profile="default")
        self.data: dict[str, Any] = {}
        self.history = history.History(self)
        self.loop_data = LoopData()
        extension.call_extensions_sync("agent_init", self)
        if not number:
            self.hist_add_message(True, content="Hello.")

    def read_prompt(self, file: str) -> str:
        return PROMPTS[file]

    @extension.extensible
    def hist_add_message(self, ai: bool, content: Any, id: str = "") -> Any:
        return self.history.add_message(ai=ai, content=content, id=id)

    @extension.extensible
    def hist_add_user_message(self, message: UserMessage) -> Any:
        self.history.new_topic()
        return self.hist_add_message(False, content={"user_message": message.message})

    @extension.extensible
    def hist_add_warning(self, message: str) -> Any:
        added = self.hist_add_message(False, content={"system_warning": message})
        self._count_unusable(message)
        return added

    def _count_unusable(self, message: str) -> None:
        if message not in (PROMPTS["fw.msg_misformat.md"], PROMPTS["fw.msg_repeat.md"]):
            return
        state = self.loop_data.params_persistent.setdefault(
            "_unusable_response_failures", {"count": 0}
        )
        state["count"] += 1
        if state["count"] >= LINE["unusable_limit"]:
            raise HandledException("too many unusable replies")

    @extension.extensible
    async def monologue(self) -> Any:
        self.loop_data = LoopData()
        while True:
            self.loop_data.iteration += 1
            try:
                answer = await self._iteration()
                if answer is not None:
                    return answer
            except Exception as error:
                await self.handle_exception("message_loop", error)
            finally:
                if self.context.is_running():
                    await self._iteration_ended()

    @extension.extensible
    async def handle_exception(self, location: str, error: Exception) -> None:
        raise error if isinstance(error, HandledException) else HandledException(error)

    async def _iteration(self) -> str | None:
        prompt = await self.prepare_prompt(loop_data=self.loop_data)
        call = self.call_chat_model_turn if LINE["usage"] else self.call_chat_model
        result = await call(prompt)
        text = result.response if LINE["usage"] else result[0]
        repeated, self.loop_data.last_response = self.loop_data.last_response == text, text
        self.hist_add_message(True, content=text)
        if repeated:
            self.hist_add_warning(PROMPTS["fw.msg_repeat.md"])
            return None
        return self._act(text)

    def _act(self, text: str) -> str | None:
        try:
            asked = json.loads(text)
        except ValueError:
            self.hist_add_warning(PROMPTS["fw.msg_misformat.md"])
            return None
        if asked["tool_name"] == "response":
            return str(asked["tool_args"]["text"])
        result = {"tool_name": asked["tool_name"], "tool_result": asked["tool_args"]["echo"]}
        self.hist_add_message(False, content=result)
        return None

    async def _iteration_ended(self) -> None:
        await extension.call_extensions_async("message_loop_end", self, loop_data=self.loop_data)
        task = self.data.get(TASK)
        if task is None or task.is_ready():
            self.data[TASK] = DeferredTask("Background").start_task(self.history.compress)
        persist_chat.save_tmp_chat(self.context)

    @extension.extensible
    async def prepare_prompt(self, loop_data: LoopData) -> str:
        before = extension.classes("message_loop_prompts_before")
        for kind in [one for one in before if "_89_" in one.__module__]:
            await kind(self).execute(loop_data=loop_data)
        await self._wait_for_room()
        for kind in [one for one in before if "_89_" not in one.__module__]:
            kind(self).execute(loop_data=loop_data)
        loop_data.system = [SYSTEM]
        text = "\n".join(
            [SYSTEM, *(p.output_text() for p in (*self.history.bulks, *self.history.topics)),
             self.history.current.output_text()]
        )  # fmt: skip
        tokens = history.tokens.approximate_tokens(text)
        self.data["ctx_window"] = {"text": text, "tokens": tokens}
        return text

    async def _wait_for_room(self) -> None:
        while self.history.is_over_limit():
            before, task = self.history.get_tokens(), self.data.get(TASK)
            if task is not None:
                done = bool(await task.result())
                self.data[TASK] = None
            else:
                done = await self.history.compress()
            after = self.history.get_tokens()
            if LINE["gives_up"] and (not done or after >= before):
                told = f"Nothing was freed. Tokens before: {before}; after: {after}."
                self.context.log.log("warning", "History compression stalled", told)
                return

    @extension.extensible
    async def call_chat_model(self, prompt: str) -> tuple[str, str]:
        return str(await self._ask(prompt)), ""

    @extension.extensible
    async def call_chat_model_turn(self, prompt: str) -> Any:
        text = await self._ask(prompt)
        wrote = history.tokens.approximate_tokens(str(text))
        usage = {"input_tokens": self.data["ctx_window"]["tokens"] - 7, "output_tokens": wrote}
        return SimpleNamespace(response=str(text), reasoning="", usage=usage)

    async def _ask(self, prompt: str) -> Any:
        call: dict[str, Any] = {"messages": [prompt]}
        await extension.call_extensions_async("chat_model_call_before", self, call_data=call)
        return await _answered(MODELS["chat"], prompt)

    @extension.extensible
    async def call_utility_model(self, system: str, message: str) -> str:
        return str(await _answered(MODELS["utility"], message))


async def _answered(model: Callable[..., Any], text: str) -> Any:
    await asyncio.sleep(0)
    told = model(text)
    return await told if inspect.isawaitable(told) else told
