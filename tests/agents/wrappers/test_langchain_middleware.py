"""LangChain's middleware and callbacks, on doubles of its messages and base classes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from ctxhealth.agents.langchain_middleware import callback_handler, middleware
from ctxhealth.client import Chat
from tests.agents.wrappers.conftest import kinds, only
from tests.agents.wrappers.doubles import BadRequest
from tests.client.server import Server

USAGE = {
    "input_tokens": 30, "output_tokens": 4, "total_tokens": 34,
    "input_token_details": {"cache_read": 20, "cache_creation": 1},
    "output_token_details": {"reasoning": 2},
}  # fmt: skip
HUMAN = SimpleNamespace(type="human", content="hello")


class Base:
    """What the real base classes give: a constructor without arguments."""


@pytest.fixture(autouse=True)
def _modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Just enough of the packages for a class to be derived from theirs."""
    thread = SimpleNamespace(id=None)
    made: dict[str, dict[str, Any]] = {
        "langchain": {}, "langchain.agents": {},
        "langchain.agents.middleware": {"AgentMiddleware": Base},
        "langchain_core": {}, "langchain_core.callbacks": {"BaseCallbackHandler": Base},
        "langgraph": {}, "langgraph.config": {"get_config": lambda: _config(thread)},
    }  # fmt: skip
    for name, names in made.items():
        module = ModuleType(name)
        vars(module).update({**names, "thread": thread})
        monkeypatch.setitem(sys.modules, name, module)
    yield


def _config(thread: Any) -> dict[str, Any]:
    if thread.id is None:
        raise RuntimeError("called outside of a runnable context")
    return {"configurable": {"thread_id": thread.id}}


def on_thread(name: str) -> None:
    vars(sys.modules["langgraph.config"])["thread"].id = name


def ai(content: Any = "fine", **fields: Any) -> Any:
    about = {"finish_reason": "stop", "model_name": "m-1"}
    given = {"usage_metadata": USAGE, "tool_calls": [], "response_metadata": about, **fields}
    return SimpleNamespace(type="ai", content=content, **given)


def request(*messages: Any, **settings: Any) -> Any:
    model = SimpleNamespace(model_name="m", max_tokens=60)
    return SimpleNamespace(model=model, messages=list(messages), model_settings=settings)


def response(message: Any) -> Any:
    return SimpleNamespace(result=[message], structured_response=None)


def test_a_model_call_is_told_and_handed_on_as_it_is(server: Server, chat: Chat) -> None:
    watch, asked, answer = middleware(chat), request(HUMAN), response(ai())
    given: list[Any] = []

    def handler(found: Any) -> Any:
        given.append(found)
        return answer

    assert watch.wrap_model_call(asked, handler) is answer
    assert given == [asked]
    [sent] = only(server, chat, "request.sent")
    [replied] = only(server, chat, "model.replied")
    assert sent["max_output"] == 60
    assert replied["usage"] == {
        "dialect": "openai", "input": 30, "output": 4, "cache_read": 20, "cache_write": 1,
        "reasoning": 2, "total": 34,
    }  # fmt: skip
    assert (replied["finish"], replied["model"]) == ("stop", "m-1")
    assert watch.mistakes == 0


def test_a_turn_is_the_agent_s_run_and_a_failed_one_ends_with_the_next(
    server: Server, chat: Chat
) -> None:
    watch, error = middleware(chat), BadRequest({"error": {"message": "too long"}})

    def fail(found: Any) -> Any:
        raise error

    watch.before_agent({}, None)
    with pytest.raises(BadRequest):
        watch.wrap_model_call(request(HUMAN), fail)
    watch.before_agent({}, None)
    watch.wrap_model_call(request(HUMAN), lambda found: response(ai()))
    watch.after_agent({"messages": [HUMAN, ai()]}, None)
    watch.before_agent({}, None)
    watch.wrap_model_call(request(HUMAN), lambda found: response(ai("")))
    watch.after_agent({"messages": [HUMAN, ai("")]}, None)
    ended = only(server, chat, "turn.ended")
    assert [(event["outcome"], event.get("error")) for event in ended] == [
        ("error", "too long"), ("answered", None), ("silent", None),
    ]  # fmt: skip
    assert [event["n"] for event in only(server, chat, "reply.empty")] == [1]


def test_an_async_agent_is_told_alike(server: Server, chat: Chat) -> None:
    watch = middleware(chat)

    async def handler(found: Any) -> Any:
        return response(ai())

    async def fail(found: Any) -> Any:
        raise TimeoutError("no answer")

    async def run() -> None:
        await watch.abefore_agent({}, None)
        await watch.awrap_model_call(request(HUMAN), handler)
        with pytest.raises(TimeoutError):
            await watch.awrap_model_call(request(HUMAN), fail)
        await watch.aafter_agent({"messages": [ai()]}, None)

    asyncio.run(run())
    assert kinds(server, chat) == [
        "turn.started", "message.added", "request.sent", "model.replied", "request.sent",
        "model.failed", "turn.ended",
    ]  # fmt: skip
    assert only(server, chat, "model.failed")[0]["error"] == "timeout"


def test_each_thread_of_a_reporter_is_a_chat(server: Server, chat: Chat) -> None:
    watch = middleware(chat.reporter, window=2_000, messages=False)
    for thread in ("t1", "t2"):
        on_thread(thread)
        watch.wrap_model_call(request(HUMAN), lambda found: response(ai()))
    assert only(server, chat, "message.added") == []
    opened = {event["chat"]: event.get("window") for event in server.events("chat.opened")}
    assert opened == {"c": 1_000, "t1": 2_000, "t2": 2_000}


def test_calls_and_results_are_members_and_a_summary_cuts(server: Server, chat: Chat) -> None:
    watch = middleware(chat)
    call = {"id": "c1", "name": "look", "args": {"at": "it"}}
    asked = [
        HUMAN, ai("", tool_calls=[call]),
        SimpleNamespace(type="tool", content="found", tool_call_id="c1", name="look"),
    ]  # fmt: skip
    watch.wrap_model_call(request(*asked), lambda found: response(ai()))
    watch.wrap_model_call(request(asked[2]), lambda found: response(ai()))
    added = only(server, chat, "message.added")
    assert [(e["role"], e["kind"], e.get("calls"), e.get("answers")) for e in added] == [
        ("user", "text", None, None), ("assistant", "tool_call", ["c1"], None),
        ("tool", "tool_result", None, ["c1"]),
    ]  # fmt: skip
    [snapshot] = only(server, chat, "history.snapshot")
    assert [entry["id"] for entry in snapshot["order"]] == [added[2]["id"]]


def test_callbacks_tell_whole_and_failed_runs(server: Server, chat: Chat) -> None:
    watch = callback_handler(chat)
    first, second, stranger = uuid4(), uuid4(), uuid4()
    params = {"model": "m", "max_tokens": 40}
    watch.on_chat_model_start({}, [[HUMAN]], run_id=first, invocation_params=params)
    watch.on_chat_model_start({}, [[HUMAN]], run_id=second)
    watch.on_llm_error(BadRequest({"error": {"code": "context_length_exceeded"}}), run_id=second)
    generation = SimpleNamespace(message=ai([{"type": "thinking", "thinking": "hm"}]))
    watch.on_llm_end(SimpleNamespace(generations=[[generation]]), run_id=first)
    watch.on_llm_end(SimpleNamespace(generations=[[generation]]), run_id=stranger)
    [replied] = only(server, chat, "model.replied")
    assert replied["usage"]["input"] == 30
    assert (replied["content"]["text_chars"], replied["content"]["thinking_chars"]) == (0, 2)
    assert only(server, chat, "model.failed")[0]["code"] == "context_length_exceeded"
    assert only(server, chat, "request.sent")[0]["max_output"] == 40


def test_usage_of_zeros_is_unknown(server: Server, chat: Chat) -> None:
    watch = middleware(chat)
    zeros = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    watch.wrap_model_call(request(HUMAN), lambda found: response(ai(usage_metadata=zeros)))
    watch.wrap_model_call(request(HUMAN), lambda found: response(ai(usage_metadata=None)))
    assert [event.get("usage") for event in only(server, chat, "model.replied")] == [None, None]
