"""What an exception of a model call says: the protocol's word, the HTTP status, the text.

By class names and attributes only: the libraries that raise them belong to the agent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_CHARS = 400
_BY_NAME = (
    ("overflow", ("ContextWindowExceeded",)),
    ("rate_limit", ("RateLimit",)),
    ("auth", ("Authentication", "PermissionDenied")),
    ("timeout", ("Timeout",)),
    ("network", ("APIConnection", "ConnectError", "ConnectionError", "ClientConnector")),
    ("filtered", ("ContentPolicy",)),
    ("cancelled", ("CancelledError", "InterventionException")),
)
_BY_STATUS = {
    401: "auth", 402: "quota", 403: "auth", 408: "timeout", 413: "too_large", 429: "rate_limit",
    400: "invalid", 404: "invalid", 422: "invalid",
}  # fmt: skip
_OVERFLOW = re.compile(
    r"context[ _]length|context[ _]window|context size|maximum context|too many tokens in the "
    r"prompt|prompt is too long",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient[ _]quota|no credits|out of credit|billing|payment", re.I)
#: What an agent may call the summarizer's part of a failure.
_SUMMARIZER = frozenset(
    {"auth", "network", "overflow", "provider", "quota", "rate_limit", "timeout"}
)


@dataclass(frozen=True)
class Failure:
    """``error`` is one of the protocol's words for ``model.failed``."""

    error: str
    detail: str
    name: str
    status: int | None = None

    @property
    def summarizer(self) -> str:
        """The protocol's word for a summarizer's error."""
        return self.error if self.error in _SUMMARIZER else "other"


def failure_of(error: BaseException) -> Failure:
    detail = _detail(error)
    status = _status(error)
    return Failure(_word(error, status, detail), detail, type(error).__name__, status)


def _word(error: BaseException, status: int | None, detail: str) -> str:
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    known = next((word for word, parts in _BY_NAME if any(p in names for p in parts)), None)
    if known in ("cancelled", "overflow"):
        return known
    if status in (400, 413, None) and _OVERFLOW.search(detail):
        return "overflow"
    if status == 402 or (status in (429, None, 403) and _QUOTA.search(detail)):
        return "quota"
    if status is not None and status >= 500 and known not in ("timeout", "network"):
        return "provider"
    return known or (_BY_STATUS.get(status, "other") if status is not None else "other")


def _status(error: BaseException) -> int | None:
    value: Any = getattr(error, "status_code", None)
    try:
        status = int(value)
    except (TypeError, ValueError):
        return None
    return status if 100 <= status <= 599 else None


def _detail(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""
    return " ".join(text.split())[:_CHARS] or type(error).__name__
