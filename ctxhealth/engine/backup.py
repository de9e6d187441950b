"""A history saved before a fallback changes it, and the way back."""

from __future__ import annotations

from collections.abc import Callable

from .fallback import apply_plan, plan_fallback
from .history import History, Scope
from .keep import KeepRules
from .plan import Plan
from .reading import HistoryError, Reader

FORMAT = "ctxhealth-history"
VERSION = 1


def backup_document(history: History, command_id: str, at_ms: int) -> dict[str, object]:
    """Return a history as a JSON document, with the command it precedes and when (ms, epoch)."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "command": command_id,
        "at_ms": at_ms,
        "revision": history.revision,
        "history": history.to_dict(),
    }


def history_from_backup(document: object) -> History:
    """Return the history of a backup.

    Raises HistoryError where the document is no backup, is of a later version, or was altered.
    """
    read = Reader(document)
    if read.text("format") != FORMAT:
        raise HistoryError("format", f"must be {FORMAT!r}")
    if read.size("version") != VERSION:
        raise HistoryError("version", f"is {read.size('version')}, this release reads {VERSION}")
    raw = document.get("history") if isinstance(document, dict) else None
    history = History.from_dict(raw)
    if history.revision != read.text("revision"):
        raise HistoryError("revision", "does not match the history: the backup was altered")
    return history


def fall_back(
    history: History,
    *,
    target: int,
    save: Callable[[dict[str, object]], object],
    command_id: str,
    at_ms: int,
    scope: Scope = "history",
    rules: KeepRules | None = None,
    count: Callable[[str], int] | None = None,
) -> tuple[History, Plan]:
    """Plan, save a backup, apply: in this order, so that nothing is lost without a way back.

    ``save`` must have stored the document for good when it returns; what it raises goes through,
    with the history unchanged. It is not called where the plan changes nothing.
    """
    plan = plan_fallback(history, target=target, scope=scope, rules=rules, count=count)
    if not plan.steps:
        return history, plan
    save(backup_document(history, command_id, at_ms))
    return apply_plan(history, plan), plan
