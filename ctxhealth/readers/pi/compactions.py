"""Compactions. A failed one leaves no row at all, so that only successes are known here."""

from __future__ import annotations

import re
from typing import Any

from ctxhealth.readers.base import Event
from ctxhealth.readers.values import Row, count_at, dict_at, text_at

# What the client itself puts around a summary: a rule, a headline, two lists of files.
_FILES = re.compile(r"<(read-files|modified-files)>[^<]{0,100000}</\1>")
_FRAME = frozenset({"---", "**Turn Context (split turn):**"})


def words_of_summary(row: Row) -> str:
    """The summary without its fixed frame: empty where the summarizer answered nothing."""
    text = _FILES.sub("", text_at(row, "summary") or "")
    lines = [line for line in text.splitlines() if line.strip() not in _FRAME]
    return "\n".join(lines).strip()


def finished(row: Row, id: str, before: int | None, *, reactive: bool) -> Event:
    """The fields of ``compaction.finished``. What it left is unknown until a reply reports it.

    The file names no trigger; only one that follows an overflow is known.
    """
    return {
        "attempt": f"c-{id}", "scope": "prompt", "reported": "compaction", "before": before,
        "trigger": "reactive" if reactive else None, "summarizer": _summarizer(row),
        "emptied": None if words_of_summary(row) else True,
        "stated_before": count_at(row, "tokensBefore"),
        "stated_after": count_at(row, "tokensAfter"),
    }  # fmt: skip


def _summarizer(row: Row) -> dict[str, Any]:
    usage = dict_at(row, "usage")
    # One call at least; a turn that is cut in two takes two, and their usage is one sum.
    part: dict[str, Any] = {"calls": 1}
    if row.get("fromHook") is True:
        part = {"detail": "written by an extension"}
    sizes = [count_at(usage, key) for key in ("input", "cacheRead", "cacheWrite")]
    known = [size for size in sizes if size is not None]
    if any(known):
        part["input"] = sum(known)
        part["output"] = count_at(usage, "output")
    return {key: value for key, value in part.items() if value is not None}
