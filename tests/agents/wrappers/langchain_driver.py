"""Scenarios of LangChain and LangGraph; see driver.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ctxhealth.agents.langchain_middleware import callback_handler, middleware
from ctxhealth.client import Chat

SCENARIOS: dict[str, Callable[[str, Chat], Any]] = {}


def scenario(run: Callable[[str, Chat], Any]) -> Callable[[str, Chat], Any]:
    SCENARIOS[run.__name__] = run
    return run


def _model(url: str, **options: Any) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(base_url=url, api_key="k", model="m", max_retries=0, **options)


def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is empty"


def _ask(agent: Any, text: str, thread: str) -> Any:
    config = {"configurable": {"thread_id": thread}}
    return agent.invoke({"messages": [{"role": "user", "content": text}]}, config)


@scenario
def langchain_agent(url: str, chat: Chat) -> Any:
    """Two threads of one agent with a tool, each a chat of its own."""
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver

    watch = middleware(chat.reporter, window=2_000)
    agent = create_agent(
        _model(url, max_tokens=60), [look], system_prompt="Be brief.", middleware=[watch],
        checkpointer=InMemorySaver(),
    )  # fmt: skip
    first = _ask(agent, "where is it", "t1")["messages"][-1].content
    again = _ask(agent, "and now", "t1")["messages"][-1].content
    other = _ask(agent, "hello", "t2")["messages"][-1].content
    return [first, again, other, watch.mistakes]


@scenario
def langchain_summarized(url: str, chat: Chat) -> Any:
    """The history that LangChain's own summary cuts is told anew."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware
    from langgraph.checkpoint.memory import InMemorySaver

    watch = middleware(chat)
    model = _model(url)
    cut = SummarizationMiddleware(model=model, trigger=("messages", 4), keep=("messages", 1))
    agent = create_agent(model, [], middleware=[cut, watch], checkpointer=InMemorySaver())
    answers = [_ask(agent, text, "t")["messages"][-1].content for text in ("one", "two", "three")]
    return [answers, watch.mistakes]


@scenario
def langchain_broken(url: str, chat: Chat) -> Any:
    from langchain.agents import create_agent

    watch = middleware(chat)
    agent = create_agent(_model(url), [], middleware=[watch])
    said = ""
    try:
        _ask(agent, "too much", "t")
    except Exception as error:
        said = type(error).__name__
    empty = _ask(agent, "say nothing", "t")["messages"][-1].content
    return [said, empty, watch.mistakes]


@scenario
def langchain_async(url: str, chat: Chat) -> Any:
    from langchain.agents import create_agent

    watch = middleware(chat)
    agent = create_agent(_model(url), [], middleware=[watch])
    given = {"messages": [{"role": "user", "content": "hello"}]}
    found = asyncio.run(agent.ainvoke(given))
    return [found["messages"][-1].content, watch.mistakes]


@scenario
def langchain_callback(url: str, chat: Chat) -> Any:
    """Whole, streamed, failed; and Anthropic's cache, which LangChain puts inside the input."""
    from langchain_anthropic import ChatAnthropic

    watch = callback_handler(chat)
    model = _model(url, callbacks=[watch], stream_usage=True, max_tokens=40)
    whole = model.invoke("one two three").content
    text = "".join(str(chunk.content) for chunk in model.stream("four five"))
    said = ""
    try:
        model.invoke("six")
    except Exception as error:
        said = type(error).__name__
    other = ChatAnthropic(
        base_url=url.removesuffix("/v1"), api_key="k", model="m", max_retries=0, callbacks=[watch]
    )
    cached = other.invoke("seven eight nine").content
    return [whole, text, said, cached, watch.mistakes]


@scenario
def langchain_fallback(url: str, chat: Chat) -> Any:
    """The engine over LangChain's own messages; the agent goes on with what it leaves."""
    from langchain.agents import create_agent

    from ctxhealth.agents.message_fallback import Messages
    from ctxhealth.agents.message_shapes import SHAPES
    from ctxhealth.engine import apply_plan, plan_fallback

    watch = middleware(chat)
    agent = create_agent(_model(url), [], middleware=[watch])
    messages: list[Any] = []
    for text in ("one", "two", "three"):
        messages = agent.invoke({"messages": [*messages, {"role": "user", "content": text}]})[
            "messages"
        ]
    kept = Messages(SHAPES["langchain"], lambda text: len(text.split()))
    history = kept.history(messages)
    same = all(one is two for one, two in zip(kept.messages(history), messages, strict=True))
    plan = plan_fallback(history, target=400, count=kept.count)
    shorter = kept.messages(apply_plan(history, plan))
    answered = agent.invoke({"messages": [*shorter, {"role": "user", "content": "four"}]})
    fewer = kept.history(shorter).total("history") <= 400
    return [same, fewer and bool(answered["messages"][-1].content), watch.mistakes]
