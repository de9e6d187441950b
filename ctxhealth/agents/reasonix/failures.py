"""What kind of failure Reasonix's words mean: of a model call, of a summarizer's, of a refusal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_BY_STATUS = {
    400: "invalid", 401: "auth", 402: "quota", 403: "auth", 404: "invalid", 408: "timeout",
    413: "too_large", 422: "invalid", 429: "rate_limit",
}  # fmt: skip
_BY_KIND = {
    "cancelled": "cancelled", "auth": "auth", "quota": "quota", "balance": "quota",
    "rate_limit": "rate_limit", "timeout": "timeout", "network": "network", "request": "invalid",
    "content_filter": "filtered",
}  # fmt: skip
_STATUS = re.compile(r"(?:status|HTTP) (\d{3})\b")
_EMPTY_REPLY = "empty provider response"
_NOTHING_FOLDABLE = re.compile(r"no foldable region|nothing to (?:fold|compact)")
_REJECTED = re.compile(r"would not reduce|remains above")
_SUMMARIZER: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"returned empty output"), "empty"),
    (re.compile(r"truncated"), "truncated"),
    (re.compile(r"insufficient_quota|insufficient balance|quota"), "quota"),
    (re.compile(r"rate.?limit|too many requests"), "rate_limit"),
    (re.compile(r"deadline exceeded|timed? ?out"), "timeout"),
    (re.compile(r"connection (?:refused|reset)|no such host|network"), "network"),
)


def model_error(diagnostic: Mapping[str, Any], text: str) -> tuple[str, int | None]:
    """(error, HTTP status) of a failed call. An overflow is read from the text by the server."""
    status = diagnostic.get("status")
    if not isinstance(status, int):
        found = _STATUS.search(text)
        status = int(found.group(1)) if found else None
    if diagnostic.get("kind") == "cancelled":
        return "cancelled", status
    if status is not None:
        return _BY_STATUS.get(status) or ("provider" if status >= 500 else "other"), status
    return _BY_KIND.get(str(diagnostic.get("kind")), "other"), None


def is_empty_reply(text: str) -> bool:
    """Whether a turn failed because its replies had nothing in them."""
    return _EMPTY_REPLY in text


def summarizer_error(text: str) -> str | None:
    """The class of a summarizer's failure; None where its summary came and was not installed."""
    low = text.lower()
    if not low or _NOTHING_FOLDABLE.search(low) or _REJECTED.search(low):
        return None
    for pattern, name in _SUMMARIZER:
        if pattern.search(low):
            return name
    found = _STATUS.search(text)
    if found and int(found.group(1)) in (401, 403):
        return "auth"
    return "provider" if found else "other"


def is_nothing_foldable(text: str) -> bool:
    return bool(_NOTHING_FOLDABLE.search(text.lower()))
