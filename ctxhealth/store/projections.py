"""Changes of a batch -> rows of attempts, latches, findings, items and readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from django.db import connection

from ctxhealth.core.changes import Changes, ItemChange
from ctxhealth.core.model import AttemptView, FindingView, LatchView, ReadingPoint
from ctxhealth.store import bulk, chat_rows, incident_rows
from ctxhealth.store.states import Held

Row = tuple[Any, ...]
_ENCODER = msgspec.json.Encoder()
_ATTEMPT = "INSERT INTO store_compactionattempt (chat_id, attempt, first_seq, outcome, at, view)"
_ATTEMPT_AGAIN = (
    "ON CONFLICT (chat_id, attempt) DO UPDATE SET"
    " outcome = excluded.outcome, at = excluded.at, view = excluded.view"
)
_LATCH = (
    "INSERT INTO store_latch (chat_id, latch, set_seq, kind, justified, set_at, cleared_at, view)"
)
_LATCH_AGAIN = (
    "ON CONFLICT (chat_id, latch, set_seq) DO UPDATE SET kind = excluded.kind,"
    " justified = excluded.justified, cleared_at = excluded.cleared_at, view = excluded.view"
)
_FINDING = "INSERT INTO store_finding (chat_id, code, since_seq, severity, since, closed_at, view)"
_FINDING_AGAIN = (
    "ON CONFLICT (chat_id, code, since_seq) DO UPDATE SET"
    " severity = excluded.severity, closed_at = excluded.closed_at, view = excluded.view"
)
_READING = (
    "INSERT INTO store_reading"
    ' (chat_id, chat_seq, at, load, source, "window", budget, "trigger", history, local)'
)
_READING_AGAIN = (
    "ON CONFLICT (chat_id, chat_seq) DO UPDATE"
    ' SET load = excluded.load, source = excluded.source, "window" = excluded."window",'
    ' budget = excluded.budget, "trigger" = excluded."trigger", history = excluded.history,'
    " local = excluded.local"
)
_ADD = (
    "INSERT INTO store_item (chat_id, item, role, kind, tokens, place, name, excerpt, calls,"
    ' answers, "read", added_seq)'
)
_ADD_AGAIN = (
    "ON CONFLICT (chat_id, item) DO UPDATE SET role = excluded.role, kind = excluded.kind,"
    " tokens = coalesce(excluded.tokens, store_item.tokens), place = excluded.place,"
    " name = coalesce(nullif(excluded.name, ''), store_item.name),"
    " excerpt = coalesce(nullif(excluded.excerpt, ''), store_item.excerpt),"
    " calls = coalesce(nullif(excluded.calls, ''), store_item.calls),"
    " answers = coalesce(nullif(excluded.answers, ''), store_item.answers),"
    ' "read" = coalesce(excluded."read", store_item."read"), removed_seq = NULL'
)
_REMOVE = (
    "UPDATE store_item SET removed_seq = %s"
    " WHERE chat_id = %s AND item = %s AND removed_seq IS NULL"
)
_CLEAR = "UPDATE store_item SET removed_seq = %s WHERE chat_id = %s AND removed_seq IS NULL"
_MOVE = "UPDATE store_item SET place = %s WHERE chat_id = %s AND item = %s"


def write(touched: Sequence[tuple[Held, Changes]], *, incidents: bool = True) -> None:
    """Write what the fold of one batch changed; ``incidents`` False leaves those to the caller."""
    for held, changes in touched:
        if changes.parent:
            chat_rows.link_parent(held, changes.parent)
    attempts = {(h.pk, key): v for h, c in touched for key, v in c.attempts.items()}
    latches = {(h.pk, v.latch, v.set_seq): v for h, c in touched for v in c.latches.values()}
    findings = {(h.pk, key): v for h, c in touched for key, v in c.findings.items()}
    points = {(h.pk, v.chat_seq): v for h, c in touched for v in c.readings}
    bulk.insert(_ATTEMPT, [_attempt(key[0], v) for key, v in attempts.items()], _ATTEMPT_AGAIN)
    bulk.insert(_LATCH, [_latch(key[0], v) for key, v in latches.items()], _LATCH_AGAIN)
    bulk.insert(_FINDING, [_finding(key[0], v) for key, v in findings.items()], _FINDING_AGAIN)
    bulk.insert(_READING, [_reading(key[0], v) for key, v in points.items()], _READING_AGAIN)
    _items(touched)
    if incidents:
        incident_rows.write(touched)


def _items(touched: Sequence[tuple[Held, Changes]]) -> None:
    """In order within a chat; additions of all chats go together between the other steps."""
    adds: dict[tuple[int, str], Row] = {}
    for held, changes in touched:
        for change in changes.items:
            key = (held.pk, change.id)
            if change.op == "add" and key not in adds:
                adds[key] = _item(held.pk, change)
                continue
            bulk.insert(_ADD, list(adds.values()), _ADD_AGAIN)
            adds = {}
            if change.op == "add":
                adds[key] = _item(held.pk, change)
            else:
                _item_step(held.pk, change)
    bulk.insert(_ADD, list(adds.values()), _ADD_AGAIN)


def _item_step(chat: int, change: ItemChange) -> None:
    with connection.cursor() as cursor:
        if change.op == "remove":
            cursor.execute(_REMOVE, [change.chat_seq, chat, change.id])
        elif change.op == "clear":
            cursor.execute(_CLEAR, [change.chat_seq, chat])
        elif change.op == "move":
            cursor.execute(_MOVE, [change.block or "", chat, change.id])


def _item(chat: int, change: ItemChange) -> Row:
    return (
        chat,
        change.id,
        change.role or "",
        change.kind or "",
        change.tokens,
        change.block or "",
        change.name or "",
        change.excerpt or "",
        _list(change.calls) if change.calls else "",
        _list(change.answers) if change.answers else "",
        change.read,
        change.chat_seq,
    )


def _list(ids: list[str]) -> str:
    return _ENCODER.encode(ids).decode()


def _json(view: msgspec.Struct) -> str:
    return _ENCODER.encode(view).decode()


def _attempt(chat: int, view: AttemptView) -> Row:
    first = view.started_seq if view.started_seq is not None else view.finished_seq
    at = view.finished_at if view.finished_at is not None else view.started_at
    return (chat, view.attempt, first or 0, view.outcome.value, at, _json(view))


def _latch(chat: int, view: LatchView) -> Row:
    return (
        chat,
        view.latch,
        view.set_seq,
        view.kind,
        view.justified,
        view.set_at,
        view.cleared_at,
        _json(view),
    )


def _finding(chat: int, view: FindingView) -> Row:
    return (
        chat,
        view.code,
        view.since_seq,
        view.severity.value,
        view.since,
        view.closed_at,
        _json(view),
    )


def _reading(chat: int, point: ReadingPoint) -> Row:
    return (
        chat,
        point.chat_seq,
        point.at,
        point.load,
        point.source.value,
        point.window,
        point.budget,
        point.trigger,
        point.history,
        point.local,
    )
