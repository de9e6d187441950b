"""What kind of failure a client library's error is, by its attributes and its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BY_STATUS = {
    400: "invalid", 401: "auth", 402: "quota", 403: "auth", 404: "invalid", 408: "timeout",
    409: "invalid", 413: "too_large", 422: "invalid", 429: "rate_limit",
}  # fmt: skip
_BY_CODE = {
    "insufficient_quota": "quota", "billing_error": "quota", "rate_limit_exceeded": "rate_limit",
    "content_filter": "filtered", "content_policy_violation": "filtered",
}  # fmt: skip
_BY_NAME = (
    ("Cancel", "cancelled"), ("KeyboardInterrupt", "cancelled"), ("GeneratorExit", "cancelled"),
    ("Timeout", "timeout"), ("Connect", "network"), ("Network", "network"),
    ("Protocol", "network"), ("ContentFilter", "filtered"),
)  # fmt: skip


def failure_of(error: BaseException) -> dict[str, Any]:
    """Status, code and text as the library's error has them, and what kind of failure that is.

    Whether it is an overflow is read from code and text by the server.
    """
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    told: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    code = getattr(error, "code", None) or told.get("code") or told.get("type")
    return {
        "error": _kind(error, status, code),
        "status": status if isinstance(status, int) else None,
        "code": str(code) if code else None,
        "detail": str(told.get("message") or error) or None,
    }


def _kind(error: BaseException, status: Any, code: Any) -> str:
    if code in _BY_CODE:
        return _BY_CODE[code]
    if isinstance(status, int):
        return _BY_STATUS.get(status) or ("provider" if status >= 500 else "other")
    names = [kind.__name__ for kind in type(error).__mro__]
    for part, kind in _BY_NAME:
        if any(part in name for name in names):
            return kind
    return "other"
