"""Chats and turns: opened, begun, ended, killed."""

from __future__ import annotations

from typing import Any

from . import calls, host
from .books import Book, Station, show
from .failures import failure_of

_HANDLED = "HandledException"


def context_made(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """A chat, new or loaded; what a loaded one holds is attached to it only later."""
    context = kwargs["data"]["args"][0]
    if host.is_reported(context):
        for found in host.agents(context):
            station.book(found)


def context_removed(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    context = kwargs["data"].get("result")
    if context is not None:
        station.forget(context.id, "removed")


def context_reset(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """The agent threw the history away and began anew under the same id."""
    context = kwargs["data"]["args"][0]
    station.forget(context.id, "reset")
    if host.is_reported(context):
        show(station.book(context.agent0), context.agent0)


def process_killed(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """Stop, nudge and reset end a turn here: none of its own ends comes any more."""
    for found in host.agents(kwargs["data"]["args"][0]):
        book = station.known(found)
        if book is not None:
            calls.call_lost(book)
            _end(book, found, "cancelled", None)


def chain_begun(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """The user's message is about to enter the history: the turn begins before it does."""
    data = kwargs["data"]
    context, agent, by_user = data["args"][0], data["args"][1], _third(data)
    if host.is_reported(context):
        kind = "task" if _kind(context) == "task" else "user"
        _begin(station, agent, kind if by_user else "continuation")


def chain_ended(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """Always comes, also after errors; a turn that is still open ended with one."""
    data = kwargs["data"]
    agent = data["args"][1] if len(data["args"]) > 1 else data["kwargs"].get("agent")
    book = station.known(agent) if agent is not None else None
    if book is not None and book.turn is not None:
        _end(book, agent, *_how(book, data))


def monologue_begun(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """A subordinate's turn begins here, and one whose beginning was not seen."""
    if agent is None or not host.is_reported(agent.context):
        return
    book = station.book(agent)
    if book.turn is None:
        _begin(station, agent, "task" if getattr(agent, "number", 0) else "user")
    station.tell_facts(agent)
    if not book.shown:
        show(book, agent)


def monologue_ended(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    book = station.known(agent) if agent is not None else None
    if book is not None and book.turn is not None:
        _end(book, agent, *_how(book, kwargs["data"]))


def error_raised(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """Before anybody handled it: the raw exception."""
    error = kwargs["data"].get("exception")
    book = station.known(agent) if agent is not None else None
    if book is None or not isinstance(error, BaseException):
        return
    failure = failure_of(error)
    if failure.error != "cancelled" and failure.name != _HANDLED:
        book.error = f"{failure.name}: {failure.detail}"[:400]


def error_handled(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """After everybody handled it: gone means that a retry was granted."""
    book = station.known(agent) if agent is not None else None
    if book is None or book.error is None or isinstance(
        kwargs["data"].get("exception"), BaseException
    ):  # fmt: skip
        return
    book.settle()
    book.chat.note(f"retried after {book.error}"[:400], "warning", code="retried")
    book.error = None


def _begin(station: Station, agent: Any, kind: str) -> None:
    book = station.book(agent)
    book.settle()
    if book.turn is not None:
        book.chat.turn_ended(book.turn, "cancelled")
    if not book.shown:
        show(book, agent)
    book.error, book.stopped, book.last_reply, book.empty = None, False, None, 0
    book.turn = book.chat.turn_started(kind=kind)


def _end(book: Book, agent: Any, outcome: str, error: str | None) -> None:
    book.settle()
    turn, book.turn, book.build = book.turn, None, None
    if turn is not None:
        book.chat.turn_ended(turn, outcome, error)
        show(book, agent, full=False)


def _how(book: Book, data: dict[str, Any]) -> tuple[str, str | None]:
    """Outcome and error of a turn by what its function gave back."""
    error = data.get("exception")
    if isinstance(error, BaseException):
        if book.stopped:
            return "stopped", None
        failure = failure_of(error)
        if failure.error == "cancelled":
            return "cancelled", None
        known = book.error if failure.name == _HANDLED else None
        return "error", known or f"{failure.name}: {failure.detail}"[:400]
    result = data.get("result")
    return ("answered" if isinstance(result, str) and result.strip() else "silent"), None


def _third(data: dict[str, Any]) -> bool:
    """Whether a user spoke, or a subordinate reported back."""
    args = data["args"]
    return bool(args[3] if len(args) > 3 else data["kwargs"].get("user", True))


def _kind(context: Any) -> str:
    kind = getattr(context, "type", None)
    return str(getattr(kind, "value", kind) or "")
