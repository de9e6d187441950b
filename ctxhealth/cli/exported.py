"""A history out of a file: exported by an agent, saved as a backup, or left by a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxhealth.cli.errors import CannotSend
from ctxhealth.engine import History, HistoryError, default_target, history_from_backup
from ctxhealth.engine.backup import FORMAT
from ctxhealth.engine.history import Scope

_OF_A_HISTORY = frozenset({"bulks", "topics", "current"})


@dataclass(frozen=True)
class Exported:
    """``scope`` and ``target`` are what the chat's own limits give; a document names none."""

    history: History
    scope: Scope = "history"
    target: int | None = None
    chat: str | None = None


def read_exported(path: Path, chat: str | None, scope: Scope | None) -> Exported:
    """The history in ``path``. Raises CannotSend with what is wrong with the file."""
    try:
        document = _document(path)
    except OSError as error:
        raise CannotSend(f"{path} cannot be read: {error.strerror}.") from error
    if document is None:
        return _from_stream(path, chat, scope)
    if chat is not None:
        raise CannotSend(f"{path} is one history, so --chat says nothing.")
    try:
        is_backup = document.get("format") == FORMAT
        history = history_from_backup(document) if is_backup else History.from_dict(document)
    except HistoryError as error:
        raise CannotSend(f"{path}: {error}.") from error
    return Exported(history, scope or "history")


def _document(path: Path) -> dict[str, Any] | None:
    """The file as one document; None where it is lines, each an object of its own."""
    with open(path, "rb") as file:
        value = _object(next((line for line in file if line.strip()), b""))
        if value is None:
            file.seek(0)
            value = _whole(path, file.read())
    document = value.get("format") == FORMAT or not _OF_A_HISTORY.isdisjoint(value)
    return value if document else None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _whole(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CannotSend(f"{path} is neither a history nor a stream: {error}.") from error
    if not isinstance(value, dict) or value.keys().isdisjoint({*_OF_A_HISTORY, "format"}):
        raise CannotSend(
            f"{path} is no history: a JSON object with bulks, topics and current is one."
        )
    return value


def _from_stream(path: Path, chat: str | None, scope: Scope | None) -> Exported:
    try:
        from ctxhealth.cli.membership import Membership
        from ctxhealth.cli.streams import read_any
    except ImportError as error:
        raise CannotSend(
            f"A stream's history needs the server's part of ctxhealth (pip install "
            f"'ctxhealth[server]'; {error.name} is missing). An exported history needs nothing."
        ) from error
    run = Membership()
    for line in read_any(path):
        run.take(line)
    name = _named(path, chat, list(run.chats))
    history, state = run.history(name), run.chats[name].state
    limits, facts = state.limits, state.facts
    trigger_scope: Scope = "history" if limits.trigger_scope == "history" else "prompt"
    if scope is None:
        by_history = facts.history_limit is not None or trigger_scope == "history"
        scope = "history" if by_history or history.beside is None else "prompt"
    try:
        target = default_target(
            scope=scope, budget=limits.budget, trigger=limits.trigger,
            trigger_scope=trigger_scope, history_limit=facts.history_limit,
            beside=history.beside,
        )  # fmt: skip
    except ValueError:
        return Exported(history, scope, None, name)
    return Exported(history, scope, target, name)


def _named(path: Path, chat: str | None, chats: list[str]) -> str:
    if not chats:
        raise CannotSend(f"{path} holds no event of a chat.")
    if chat is None and len(chats) == 1:
        return chats[0]
    if chat in chats:
        return str(chat)
    some = ", ".join(_some(chats))
    if chat is None:
        raise CannotSend(f"{path} tells of {len(chats)} chats; choose one by --chat: {some}.")
    raise CannotSend(f"{path} tells of no chat {chat}; it has {some}.")


def _some(names: list[str]) -> Iterator[str]:
    yield from names[:8]
    if len(names) > 8:
        yield f"and {len(names) - 8:,} more"
