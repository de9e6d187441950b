"""A provider's exception in the protocol's words: error class, status, code, text."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

_OVERFLOW = (
    "context_length_exceeded", "context length", "maximum context", "context window",
    "prompt is too long", "prompt too long", "input is too long", "too many input tokens",
    "range of input length", "input length should be", "max input length",
    "exceeds the available context size", "input token count",
)  # fmt: skip
_QUOTA = ("insufficient_quota", "insufficient quota", "quota", "credits", "billing", "balance")
_BY_STATUS = {
    401: "auth", 402: "quota", 403: "auth", 408: "timeout", 413: "too_large", 429: "rate_limit",
    504: "timeout",
}  # fmt: skip


def status_of(error: BaseException) -> int | None:
    """The HTTP status, where the provider's SDK tells one."""
    response = getattr(error, "response", None)
    for value in (
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        getattr(response, "status_code", None),
    ):
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
            return value
    return None


def failure_of(error: BaseException) -> dict[str, Any]:
    """The fields error, status, code and detail of ``model.failed``; what is unknown is absent."""
    status, code, text = status_of(error), _code(error), str(error)
    fields = {
        "error": _class(error, status, code, text.lower()),
        "status": status,
        "code": code,
        "detail": text or type(error).__name__,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _code(error: BaseException) -> str | None:
    body = getattr(error, "body", None)
    for found in (getattr(error, "code", None), _inner(body, "code"), _inner(body, "type")):
        if isinstance(found, str) and found:
            return found
    return None


def _inner(body: Any, name: str) -> Any:
    if not isinstance(body, Mapping):
        return None
    error = body.get("error")
    return error.get(name) if isinstance(error, Mapping) else body.get(name)


def _class(error: BaseException, status: int | None, code: str | None, text: str) -> str:
    if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)):
        return "cancelled"
    if isinstance(error, TimeoutError) or "timeout" in type(error).__name__.lower():
        return "timeout"
    said = f"{code or ''} {text}".lower()
    if status in (None, 400, 413, 422) and any(mark in said for mark in _OVERFLOW):
        return "overflow"
    # A 429 is also how some providers say that the account is empty.
    if status in (400, 402, 403, 429) and any(mark in said for mark in _QUOTA):
        return "quota"
    if status is not None:
        return _BY_STATUS.get(status, "invalid" if status < 500 else "provider")
    if isinstance(error, OSError) or "connect" in type(error).__name__.lower():
        return "network"
    return "other"


def summarizer_error(error: BaseException) -> str:
    """The same in the summarizer's vocabulary."""
    found = str(failure_of(error)["error"])
    known = ("quota", "provider", "network", "timeout", "overflow", "rate_limit", "auth")
    return found if found in known else "other"
