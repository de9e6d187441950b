"""An import as one line of its list: its state in words, how far it is, what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ctxhealth.core.states import Meta
from ctxhealth.store.queries import ImportRow
from ctxhealth.web.format import plural

# The one place that names the states of an import.
STATES: dict[str, Meta] = {
    "queued": Meta(label="waits", icon="clock", tone="neutral"),
    "reading": Meta(label="reading", icon="loader", tone="active"),
    "done": Meta(label="imported", icon="circle-check", tone="good"),
    "known": Meta(label="already here", icon="equal", tone="info"),
    "refused": Meta(label="refused", icon="ban", tone="warning"),
    "failed": Meta(label="failed", icon="circle-x", tone="critical"),
    "interrupted": Meta(label="interrupted", icon="circle-pause", tone="warning"),
}


@dataclass(frozen=True, slots=True)
class ImportLine:
    """``share`` is how much of the file is read, in per cent; ``result`` says what came of it."""

    row: ImportRow
    state: Meta
    share: int
    result: str
    continued: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)


def import_lines(rows: Iterable[ImportRow]) -> list[ImportLine]:
    return [line_of(row) for row in rows]


def line_of(row: ImportRow) -> ImportLine:
    share = min(100, 100 * row.bytes_read // row.size) if row.size else 0
    continued = "" if not row.resumed else "The server restarted meanwhile; it went on from there."
    return ImportLine(row, STATES[row.state], share, _result(row), continued)


def _result(row: ImportRow) -> str:
    if not row.lines:
        return ""
    parts = [plural(row.lines, "line"), plural(row.events, "event")]
    if row.chats > 1:
        parts.append(plural(row.chats - 1, "sub-agent"))
    return ", ".join(parts)


def lands_on(rows: Iterable[ImportRow]) -> int | None:
    """The chat that a drop of one file leads to at once, where there is nothing to read first."""
    found = list(rows)
    if len(found) != 1 or found[0].state not in ("done", "known") or found[0].troubles:
        return None
    return found[0].chat
