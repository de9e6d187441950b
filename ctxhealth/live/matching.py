"""Whether a row fits the board's filters: what ``board_page`` asks the database, of one row."""

from __future__ import annotations

from ctxhealth.core.model import ChatSummary
from ctxhealth.core.presence import ENDED
from ctxhealth.store.queries import BoardFilters, BoardRow


def matches(filters: BoardFilters, row: BoardRow) -> bool:
    summary = row.summary
    outcome = summary.last_compaction.outcome if summary.last_compaction else ""
    wanted = (
        (filters.agent, row.agent),
        (filters.model, summary.model),
        (filters.outcome, outcome),
    )
    return (
        (not filters.states or summary.state in filters.states)
        and all(not want or want == have for want, have in wanted)
        and filters.cause in (None, row.group)
        and filters.latched in (None, bool(summary.latches))
        and filters.waiting in (None, _waits(summary))
        and _found(filters.q, row, summary)
    )


def _waits(summary: ChatSummary) -> bool:
    return summary.waiting_since is not None and summary.connection not in ENDED


def _found(search: str, row: BoardRow, summary: ChatSummary) -> bool:
    """Every word somewhere. Case is folded for ASCII alone, as SQLite does it."""
    texts = (summary.title or "", row.external_id, row.agent, summary.model or "")
    return all(any(_lower(word) in _lower(text) for text in texts) for word in search.split()[:8])


def _lower(text: str) -> str:
    return "".join(char.lower() if char.isascii() else char for char in text)
