"""The ``errorMessage`` of a reply that failed: class, status and words."""

from __future__ import annotations

import json
import re
from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.errors import model_error
from ctxhealth.readers.values import dict_at, text_at

_STATUS = re.compile(r"^([45][0-9]{2})\b:? ?")


def failure_of(message: str) -> Event:
    """The fields of ``model.failed`` that its words give."""
    found = _STATUS.match(message)
    status = int(found.group(1)) if found else None
    body = message[found.end() :] if found else message
    words, code = _said(body)
    return {
        "error": model_error(f"{code or ''} {words}", status, None),
        "status": status, "code": code, "detail": words[:2_000],
    }  # fmt: skip


def _said(body: str) -> tuple[str, str | None]:
    """The provider's sentence and code out of the JSON that it answered, else the whole text."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return body, None
    if not isinstance(answer, dict):
        return body, None
    error = dict_at(answer, "error") or answer
    code = text_at(error, "code") or text_at(error, "type")
    return text_at(error, "message") or body, None if code is None else code[:200]
