"""Compressions. The file has no row of its own for them: only what was told to the user, or, where
nobody is told, a history that begins with its own summary."""

from __future__ import annotations

import re
from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.gemini.items import words_of
from ctxhealth.readers.values import text_at

_SNAPSHOT = "<state_snapshot>"
_DONE = re.compile(r"compressed from ([\d,.]+|unknown) to ([\d,.]+|unknown) tokens", re.IGNORECASE)
# (words, the program's own status, our reason's class)
_FAILED: tuple[tuple[str, str, str | None], ...] = (
    ("not beneficial", "failed_inflated", None),
    ("token counting error", "failed_token_count", "other"),
    ("empty summary", "failed_empty_summary", "empty"),
    ("could not compress", "failed", "other"),
    ("error compressing", "failed", "other"),
)


def compression_in(text: str) -> Event | None:
    """The fields of ``compaction.finished`` that an information for the user gives.

    The counts are the program's estimates of the history; what it left is known when the next
    reply reports it.
    """
    done = _DONE.search(text[:2_000])
    if done is not None:
        return {
            "reported": "compressed", "scope": "history", "summarizer": {"calls": 1},
            "before": _count(done.group(1)), "after": _count(done.group(2)),
        }  # fmt: skip
    lower = text[:2_000].lower()
    if "compress" not in lower:
        return None
    for words, status, error in _FAILED:
        if words in lower:
            summarizer = {"calls": 1} if error is None else {"calls": 1, "error": error}
            return {"reported": status, "scope": "history", "summarizer": summarizer,
                    "reason": text[:400]}  # fmt: skip
    return None


def snapshot_in(messages: list[Any]) -> str | None:
    """The id of the summary that a history begins with behind its preamble, if it does."""
    for message in messages[:2]:
        if isinstance(message, dict) and words_of(message).lstrip().startswith(_SNAPSHOT):
            return (text_at(message, "id") or "")[:20]
    return None


def _count(text: str) -> int | None:
    digits = re.sub(r"[,.]", "", text)
    return int(digits) if digits.isdigit() and len(digits) < 12 else None
