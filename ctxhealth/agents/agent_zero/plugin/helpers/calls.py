"""Calls of the chat model and of the utility model: sent, replied with usage or without, failed."""

from __future__ import annotations

import time
from typing import Any

from . import host, passes, usage
from .books import Book, Station
from .failures import Failure, failure_of

_KEY = "_ctxhealth_call"


def chat_call_begun(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    if agent is None or not host.is_reported(agent.context):
        return
    call = kwargs.get("call_data") or {}
    book = station.book(agent)
    call_lost(book)
    book.settle()
    book.began = time.monotonic()
    book.request = book.chat.request_sent(
        local=host.prompt_of(agent),
        images=_images(call.get("messages")),
        delta=True if call.get("previous_response_id") else None,
    )


def chat_call_ended(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """Two functions end a call in some lines; the first one that does tells."""
    book = station.known(agent) if agent is not None else None
    if book is None or book.request is None:
        return
    request, book.request = book.request, None
    data, ms = kwargs["data"], _ms(book.began)
    error = data.get("exception")
    if isinstance(error, BaseException):
        _failed(book, request, failure_of(error), "chat", ms)
        return
    text, thinking = _said(data.get("result"))
    told = usage.told_by(data.get("result"))
    content = {"text_chars": len(text.strip()), "thinking_chars": len(thinking.strip())}
    book.chat.model_replied(request, usage=told, content=content, ms=ms)
    if text.strip() or thinking.strip():
        book.empty = 0
        return
    book.empty += 1
    told = told or {}
    book.chat.reply_empty(
        book.empty, request=request, prompt=told.get("input"), completion=told.get("output")
    )


def call_lost(book: Book) -> None:
    """A call whose end never came: the task was killed under it."""
    if book.request is not None:
        book.chat.model_failed(book.request, "cancelled")
        book.request = None


def utility_begun(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    if agent is None or not host.is_reported(agent.context):
        return
    data = kwargs["data"]
    system, message = _texts(data)
    now = passes.current()
    request = station.book(agent).chat.request_sent(
        purpose="utility", attempt=now.attempt if now is not None else None
    )
    if now is not None:
        now.open.add(request)
    # The payload of a function's two points is one dictionary, so what lies in it comes back.
    data[_KEY] = (request, time.monotonic(), usage.expect(system, message))


def utility_ended(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    data = kwargs["data"]
    found = data.pop(_KEY, None)
    book = station.known(agent) if agent is not None else None
    if found is None or book is None:
        return
    request, began, expected = found
    error = data.get("exception")
    now = passes.current()
    if now is not None:
        now.open.discard(request)
    # A failed call leaves a coroutine that was never awaited as its result: errors first.
    if isinstance(error, BaseException):
        failure = failure_of(error)
        usage.forget(expected)
        _failed(book, request, failure, "utility", _ms(began))
        if now is not None:
            now.called(failure=failure)
        return
    result = data.get("result")
    text = result if isinstance(result, str) else ""
    if now is not None:
        now.called(text=text)
    content, ms = {"text_chars": len(text.strip())}, _ms(began)
    usage.when_known(
        expected,
        lambda told: book.chat.model_replied(
            request, purpose="utility", usage=told, content=content, ms=ms
        ),
    )


def _failed(book: Book, request: str, failure: Failure, purpose: str, ms: int) -> None:
    book.chat.model_failed(
        request, failure.error, status=failure.status, detail=failure.detail,
        purpose="utility" if purpose == "utility" else None, ms=ms, code=failure.name,
    )  # fmt: skip


def _said(result: Any) -> tuple[str, str]:
    """Text and thinking of a chat call's result, as either line of the agent gives it."""
    if isinstance(result, tuple) and len(result) == 2:
        return str(result[0] or ""), str(result[1] or "")
    return str(getattr(result, "response", "") or ""), str(getattr(result, "reasoning", "") or "")


def _texts(data: dict[str, Any]) -> tuple[str, str]:
    args, named = data["args"], data["kwargs"]
    system = named.get("system", args[1] if len(args) > 1 else "")
    message = named.get("message", args[2] if len(args) > 2 else "")
    return str(system), str(message)


def _images(messages: Any) -> int | None:
    """Pictures in a prompt; None where its messages cannot be read."""
    if not isinstance(messages, list):
        return None
    found = 0
    for message in messages:
        content = getattr(message, "content", None)
        if isinstance(content, list):
            found += sum(isinstance(p, dict) and p.get("type") == "image_url" for p in content)
    return found or None


def _ms(began: float) -> int:
    return int((time.monotonic() - began) * 1000)
