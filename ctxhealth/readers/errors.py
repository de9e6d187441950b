"""The class of a failed call, from its words, its status and the program's own word for it."""

from __future__ import annotations

import re

# (mark in lower case, the model error's class, the summarizer error's class)
_CLASSES: tuple[tuple[str, str, str], ...] = (
    ("no assistant message", "provider", "empty"),
    ("prompt is too long", "overflow", "overflow"),
    ("conversation too long", "overflow", "overflow"),
    ("exceed context limit", "overflow", "overflow"),
    ("context_window_exceeded", "overflow", "overflow"),
    ("context_length_exceeded", "overflow", "overflow"),
    ("maximum context length", "overflow", "overflow"),
    ("ran out of room in the model", "overflow", "overflow"),
    ("credit balance", "quota", "quota"),
    ("usage limit", "quota", "quota"),
    ("limit reached", "quota", "quota"),
    ("quota", "quota", "quota"),
    ("billing", "quota", "quota"),
    ("payment required", "quota", "quota"),
    ("(429)", "rate_limit", "rate_limit"),
    ("rate limit", "rate_limit", "rate_limit"),
    ("rate_limit", "rate_limit", "rate_limit"),
    ("too many requests", "rate_limit", "rate_limit"),
    ("invalid api key", "auth", "auth"),
    ("authentication", "auth", "auth"),
    ("oauth token", "auth", "auth"),
    ("/login", "auth", "auth"),
    ("timed out", "timeout", "timeout"),
    ("timeout", "timeout", "timeout"),
    ("connection error", "network", "network"),
    ("econnre", "network", "network"),
    ("fetch failed", "network", "network"),
    ("stream disconnected", "network", "network"),
    ("compaction output item", "other", "malformed"),
    ("too large", "too_large", "overflow"),
    ("content filtering", "filtered", "other"),
    ("overloaded", "provider", "provider"),
    ("high demand", "provider", "provider"),
    ("server error", "provider", "provider"),
    ("server_error", "provider", "provider"),
)
_STATUS: dict[int, str] = {
    400: "invalid", 401: "auth", 402: "quota", 403: "auth", 404: "invalid", 408: "timeout",
    413: "too_large", 422: "invalid", 429: "rate_limit",
}  # fmt: skip


def model_error(text: str, status: int | None, stated: str | None) -> str:
    """The class of a failed model call, from its words, its status and the row's own word."""
    words = f"{stated or ''} {text[:2_000]}".lower()
    for mark, error, _ in _CLASSES:
        if mark in words:
            return error
    if status is not None:
        return "provider" if status >= 500 else _STATUS.get(status, "other")
    found = re.search(r"api error: ([45][0-9]{2})\b", words)
    if found:
        return model_error("", int(found.group(1)), None)
    return "other"


def summarizer_error(reason: str) -> str:
    """The class of a failed summary, from its reason alone: the transcript has no more."""
    words = reason[:2_000].lower()
    if words.strip() == "exhausted":
        return "overflow"
    for mark, _, error in _CLASSES:
        if mark in words:
            return error
    found = re.search(r"api error: ([45][0-9]{2})\b", words)
    if found:
        status = int(found.group(1))
        return "provider" if status >= 500 else _SUMMARY_STATUS.get(status, "other")
    return "other"


_SUMMARY_STATUS = {401: "auth", 402: "quota", 403: "auth", 408: "timeout", 429: "rate_limit"}
