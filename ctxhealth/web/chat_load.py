"""Reads what a chat's page shows beside the folded detail. The only module here that queries
for the chat regions; rendering itself stays pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ctxhealth.core.model import AttemptView, ChatDetail, Source
from ctxhealth.store import queries
from ctxhealth.store.queries import ChatRow, EventRow
from ctxhealth.web.chat_page import Change, ChatExtras, ParentLink, change_of

MAX_ATTEMPTS = 50
MAX_CLOSED = 50
MAX_COMMANDS = 20
EVERY_READING = 1_000_000
MAX_STEPS = 40  # events of an opened attempt
SOON = 10  # events
_GOING_ON = ("turn.started", "request.sent", "message.added", "compaction.started")


def load_chat(chat_id: int) -> tuple[ChatDetail, ChatExtras] | None:
    """Detail and extras of one chat, as ``fragments.chat_regions`` takes them."""
    chat = queries.chat_get(chat_id)
    detail = queries.chat_detail(chat_id) if chat else None
    if chat is None or detail is None:
        return None
    return detail, load_extras(chat)


def load_extras(chat: ChatRow) -> ChatExtras:
    attempts = queries.chat_attempts(chat.id)
    findings = queries.chat_findings(chat.id)
    return ChatExtras(
        chat=chat,
        attempts=attempts[:MAX_ATTEMPTS],
        attempts_total=max(len(attempts), chat.summary.compactions),
        latches=queries.chat_latches(chat.id, limit=MAX_CLOSED),
        closed_findings=[f for f in findings if f.closed_at is not None][:MAX_CLOSED],
        commands=queries.chat_commands(chat.id, limit=MAX_COMMANDS),
        children=queries.chat_children(chat.id),
        change=_last_change(chat, attempts),
        parent=_parent(chat),
    )


def _parent(chat: ChatRow) -> ParentLink | None:
    parent = queries.chat_get(chat.parent) if chat.parent is not None else None
    if parent is None:
        return None
    return ParentLink(parent.id, parent.summary.title or parent.external_id)


@dataclass(frozen=True, slots=True)
class LoadedAttempt:
    """One attempt with both its moments and the events from its start to its end."""

    attempt: AttemptView
    change: Change | None
    events: Sequence[EventRow]


def load_attempt(chat: ChatRow, first_seq: int) -> LoadedAttempt | None:
    attempt = queries.chat_attempt(chat.id, first_seq)
    if attempt is None:
        return None
    change = _change_by(chat, attempt)
    last = attempt.finished_seq or first_seq
    events = queries.chat_events(chat.id, after=first_seq - 1, limit=MAX_STEPS)
    return LoadedAttempt(attempt, change, [e for e in events if (e.chat_seq or 0) <= last])


def _last_change(chat: ChatRow, attempts: Sequence[AttemptView]) -> Change | None:
    """Of the newest attempt that ended and changed a size."""
    for attempt in attempts:
        if attempt.before != attempt.after and (change := _change_by(chat, attempt)):
            return change
    return None


def _change_by(chat: ChatRow, attempt: AttemptView) -> Change | None:
    if attempt.finished_seq is None or attempt.before is None or attempt.after is None:
        return None
    return _change(chat.id, chat.opened_at, attempt, _told_at(chat.id, attempt))


def _counted_at(chat_id: int, attempt: AttemptView, ended: int) -> int:
    """Where nobody said what was left, the next request's count did: until then it is unknown."""
    if "measured" not in attempt.flags:
        return ended
    counts = (
        point.chat_seq
        for point in queries.chat_readings(chat_id, points=EVERY_READING)
        if point.chat_seq > ended and point.source is not Source.PENDING
    )
    return next(counts, ended)


def _told_at(chat_id: int, attempt: AttemptView) -> int | None:
    """The snapshot with which the agent said what became of its history, before it went on."""
    told = None
    for row in queries.chat_events(chat_id, after=attempt.finished_seq or 0, limit=SOON):
        if row.type == "history.snapshot":
            told = row.chat_seq
        elif row.type in _GOING_ON:
            break
    return told


@lru_cache(maxsize=256)
def _change(chat_id: int, opened_at: int, attempt: AttemptView, told: int | None) -> Change | None:
    """Both moments by replay; the log behind them never changes, so one look is enough.

    ``opened_at`` keeps a chat of a rebuilt database from being taken for its predecessor.
    """
    ended = attempt.finished_seq or 0
    begun = (attempt.started_seq or ended) - 1
    before = queries.chat_detail(chat_id, at=begun)
    after = queries.chat_detail(chat_id, at=told or _counted_at(chat_id, attempt, ended))
    return change_of(attempt, before, after) if before and after else None
