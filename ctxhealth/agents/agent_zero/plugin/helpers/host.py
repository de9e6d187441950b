"""What is there of the agent: found by looking, never guessed from a version.

Every look-up gives None where this Agent Zero has no such thing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

TASK = "_organize_history_task"
RETRIES = "_plugin.error_retry.critical_exception_counter"
RESPONSES = "responses_state"
WINDOW = "ctx_window"
SUBORDINATE = "_subordinate"
UNUSABLE = "_unusable_response_failures"
BACKGROUND = "Background"
TURNS = "AgentContext"


def module(name: str) -> Any:
    """A module of the agent, or None."""
    found = sys.modules.get(name)
    if found is not None:
        return found
    try:
        return import_module(name)
    except Exception:
        return None


def attribute(name: str, *path: str) -> Any:
    """``path`` inside the module ``name``, or None."""
    found = module(name)
    for part in path:
        found = getattr(found, part, None)
    return found


def contexts() -> list[Any]:
    every = attribute("agent", "AgentContext", "all")
    return list(every()) if every else []


def is_reported(context: Any) -> bool:
    """Background contexts are the agent's own scratch paper: never saved, never shown."""
    kind = getattr(context, "type", None)
    return getattr(kind, "value", kind) != "background"


def chat_of(agent: Any) -> str:
    """The chat's id: the context's, and behind it the agent's number where it is a subordinate."""
    number = getattr(agent, "number", 0)
    return agent.context.id if not number else f"{agent.context.id}/A{number}"


def find(chat: str) -> tuple[Any, Any] | None:
    """(context, agent) of a chat's id, or None where it is not in this process."""
    get = attribute("agent", "AgentContext", "get")
    name, _, _ = chat.rpartition("/A")
    for context in (get(chat), get(name)) if get else ():
        for agent in agents(context) if context is not None else ():
            if chat_of(agent) == chat:
                return context, agent
    return None


def agents(context: Any) -> Iterator[Any]:
    """The context's agents, A0 first."""
    agent = getattr(context, "agent0", None)
    seen: set[int] = set()
    while agent is not None and id(agent) not in seen:
        seen.add(id(agent))
        yield agent
        agent = agent.data.get(SUBORDINATE)


def is_running(context: Any) -> bool:
    return bool(context.is_running())


def limit_of(history: Any) -> int | None:
    """Tokens that the history may hold before the agent compresses it."""
    read = getattr(history, "_get_ctx_size_for_history", None)
    return int(read()) if read else None


def prompt_of(agent: Any) -> int | None:
    """Tokens of the prompt that was built last, by the agent's count."""
    window = agent.data.get(WINDOW)
    tokens = window.get("tokens") if isinstance(window, dict) else None
    return int(tokens) if tokens is not None else None


def count(text: str) -> int:
    """The agent's own count of a text. Raises where there is no tokenizer."""
    counted: int = module("helpers.tokens").approximate_tokens(text)
    return counted


def count_message(text: str) -> int:
    """As the agent counts a message, whose speaker is counted too; a little much for a bulk."""
    return count(f"user: {text}")


def has_responses() -> bool:
    """Whether this line of the agent may leave the history with the provider."""
    return attribute("agent", "Agent", "call_chat_model_turn") is not None


def missing() -> list[str]:
    """What the commands need and this agent does not have, in words."""
    history = attribute("helpers.history", "History")
    wanted = {
        "helpers.history.History": history,
        "helpers.history.History.compress": getattr(history, "compress", None),
        "helpers.history.Bulk": attribute("helpers.history", "Bulk"),
        "helpers.history.Topic": attribute("helpers.history", "Topic"),
        "helpers.history.Message": attribute("helpers.history", "Message"),
        "helpers.tokens.approximate_tokens": attribute("helpers.tokens", "approximate_tokens"),
        "helpers.defer.EventLoopThread": attribute("helpers.defer", "EventLoopThread"),
        "agent.AgentContext.get": attribute("agent", "AgentContext", "get"),
    }
    return [name for name, found in wanted.items() if found is None]
