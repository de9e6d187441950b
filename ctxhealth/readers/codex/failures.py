"""How a task ended that ended with an error: which call failed, and why."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxhealth.readers.errors import model_error, summarizer_error
from ctxhealth.readers.values import Row, count_at, text_at

_REMOTE = "Error running remote compact task:"
_CUT = re.compile(r"^Incomplete response returned, reason: ([a-z_]{1,40})")
_CLASSES = {
    "context_window_exceeded": "overflow", "usage_limit_exceeded": "quota",
    "server_overloaded": "provider", "internal_server_error": "provider",
    "unauthorized": "auth", "bad_request": "invalid", "cyber_policy": "filtered",
    "http_connection_failed": "network", "response_stream_connection_failed": "network",
    "response_stream_disconnected": "network", "response_too_many_failed_attempts": "network",
}  # fmt: skip
_SUMMARY = {"invalid": "other", "too_large": "overflow", "filtered": "other"}


class Failure(NamedTuple):
    """``remote``: the message itself says that a compaction failed. ``cut``: the reply is there
    and was cut off for this reason."""

    message: str
    error: str
    status: int | None
    code: str | None
    remote: bool
    cut: str | None

    @property
    def summarizer_error(self) -> str:
        if self.error == "other":
            return summarizer_error(self.message)
        return _SUMMARY.get(self.error, self.error)


def failure_of(error: Row) -> Failure:
    """From ``error{message, codex_error_info}``, where the info is a word or one with a status."""
    message = (text_at(error, "message") or "no reason given").strip()
    info = error.get("codex_error_info")
    code, status = (info if isinstance(info, str) else None), None
    if isinstance(info, dict) and len(info) == 1:
        code, detail = next(iter(info.items()))
        status = count_at(detail, "http_status_code") if isinstance(detail, dict) else None
    cut = _CUT.match(message)
    return Failure(
        message, _class(message, code, status), status, code and code[:200],
        message.startswith(_REMOTE), cut.group(1) if cut else None,
    )  # fmt: skip


def _class(message: str, code: str | None, status: int | None) -> str:
    known = _CLASSES.get(code or "")
    if known is not None and known != "network":
        return known
    said = model_error(message, status, None)
    return known if known is not None and said == "other" else said
