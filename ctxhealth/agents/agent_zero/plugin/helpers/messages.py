"""What enters a history, which replies are unusable, and the stop after too many of them."""

from __future__ import annotations

from typing import Any

from . import host
from .books import Book, Station
from .contents import Content, content_of
from .mirror import topic_id

_HANDLED = "HandledException"
#: The agent's own words to the model, by the prompt's file -> what was wrong with the reply.
_UNUSABLE = {"fw.msg_misformat.md": "malformed", "fw.msg_repeat.md": "repeated"}
_EMPTY = ("fw.msg_empty_response.md", "fw.msg_reasoning_only.md")


def message_added(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """Comes for every message, before the hooks of its own kind do."""
    data = kwargs["data"]
    message = data.get("result")
    if agent is None or data.get("exception") or not hasattr(message, "content"):
        return
    if not host.is_reported(agent.context):
        return
    book = station.book(agent)
    content = content_of(message)
    if content.warning is not None:
        book.settle(_verdict(agent, content.warning))
    book.settle()
    book.added += message.get_tokens()
    fields = _fields(book, agent, message, content)
    if content.role == "assistant":
        # Whether it is usable is said by what follows it.
        book.held, book.last_reply = fields, content.text
    else:
        book.chat.message_added(**fields)


def warning_added(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """Behind the agent's own rule that stops it after so many unusable replies."""
    error = kwargs["data"].get("exception")
    book = station.known(agent) if agent is not None else None
    if book is None or type(error).__name__ != _HANDLED:
        return
    state = _counted(agent)
    book.settle()
    book.stopped = True
    count = state.get("count")
    book.chat.agent_stopped(
        "too many unusable replies in a row", count=count, limit=_limit(agent) or count
    )


def _fields(book: Book, agent: Any, message: Any, content: Content) -> dict[str, Any]:
    name = str(message.id)
    answers = None
    if content.role == "assistant":
        book.tool = f"{name}:call" if content.asks else None
    elif book.tool is not None and content.role in ("tool", "system"):
        answers, book.tool = [book.tool], None
    return {
        "id": name,
        "role": content.role,
        "kind": content.kind,
        "tokens": message.get_tokens(),
        "text": content.user or content.text,
        "name": content.name,
        "calls": [f"{name}:call"] if content.asks else None,
        "answers": answers,
        "turn": book.turn,
        "topic": topic_id(agent.history.current),
    }


def _verdict(agent: Any, warning: str) -> str | None:
    """What a warning says of the reply before it; None where it is about something else."""
    for file, verdict in _UNUSABLE.items():
        if warning.strip() == _words(agent, file):
            return verdict
    return "malformed" if any(warning.strip() == _words(agent, file) for file in _EMPTY) else None


def _words(agent: Any, file: str) -> str | None:
    try:
        return str(agent.read_prompt(file)).strip()
    except Exception:
        # An agent of another line has no such prompt.
        return None


def _counted(agent: Any) -> dict[str, Any]:
    params = getattr(getattr(agent, "loop_data", None), "params_persistent", None)
    state = params.get(host.UNUSABLE) if isinstance(params, dict) else None
    return state if isinstance(state, dict) else {}


def _limit(agent: Any) -> int | None:
    read = host.attribute("helpers.settings", "get_settings")
    try:
        value = read().get("max_consecutive_unusable_responses") if read else None
    except Exception:
        return None
    return int(value) if value else None
