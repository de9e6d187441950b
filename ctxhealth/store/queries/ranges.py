"""A stretch of one chat's log: what happened in it, and where a moment lies.

A range is (first, last) in ``chat_seq``, both within it. What began before it and lasted into it
belongs to it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Q

from ctxhealth.core.model import AttemptView, FindingView, LatchView, ReadingPoint
from ctxhealth.store.models import Command, CompactionAttempt, Event, Finding, Latch, Reading
from ctxhealth.store.queries.chats import (
    ATTEMPT,
    FINDING,
    LATCH,
    READING_COLUMNS,
    point_of,
    thinned,
)
from ctxhealth.store.queries.commands import CommandRow, command_row
from ctxhealth.store.queries.events import EventRow, event_row

MOST = 500
POINTS = 600
IN_LIST = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """``first`` to ``last`` in ``chat_seq``, and when the two happened, in ms."""

    first: int
    last: int
    first_at: int
    last_at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeRows:
    """What a range holds, oldest first; of each kind at most ``MOST``, the newest ones."""

    points: list[ReadingPoint]
    attempts: list[AttemptView]
    latches: list[LatchView]
    findings: list[FindingView]
    commands: list[CommandRow]
    events: list[EventRow]


def range_of(chat_id: int, first: int, last: int) -> Range | None:
    """The range between two events, cut to those that the chat has; None in an empty log."""
    events = Event.objects.filter(chat_id=chat_id)
    low, high = sorted((first, last))
    ends = [
        events.filter(chat_seq__lte=max(1, high)).order_by("-chat_seq"),
        events.filter(chat_seq__gte=low).order_by("chat_seq"),
    ]
    found = [rows.values_list("chat_seq", "at").first() for rows in ends]
    newest, oldest = found[0], found[1] or found[0]
    if newest is None or oldest is None:
        newest = oldest = events.order_by("-chat_seq").values_list("chat_seq", "at").first()
    if newest is None or oldest is None:
        return None
    if (newest[0] or 0) < (oldest[0] or 0):
        newest = oldest
    return Range(first=oldest[0] or 0, last=newest[0] or 0, first_at=oldest[1], last_at=newest[1])


def range_rows(chat_id: int, within: Range, types: Sequence[str] = ()) -> RangeRows:
    """Everything of the range that a time axis shows; ``types`` of events."""
    return RangeRows(
        points=_points(chat_id, within),
        attempts=_attempts(chat_id, within),
        latches=_latches(chat_id, within),
        findings=_findings(chat_id, within),
        commands=_commands(chat_id, within),
        events=_events(chat_id, within, types),
    )


def seq_at(chat_id: int, at: int, within: Range) -> int:
    """The last event of the range at or before a moment (ms); its first where there is none.

    By halves over the log's order, in which time all but stands still or grows.
    """
    low, high = within.first, within.last
    while low < high:
        middle = (low + high + 1) // 2
        found = _at_or_before(chat_id, middle)
        if found is None or found[1] > at:
            high = middle - 1
        else:
            low = middle
    return max(low, within.first)


def event_times(chat_id: int, seqs: Iterable[int]) -> dict[int, int]:
    """``chat_seq`` -> ms, of those that exist."""
    wanted = sorted(set(seqs))
    found: dict[int, int] = {}
    for start in range(0, len(wanted), IN_LIST):
        some = wanted[start : start + IN_LIST]
        rows = Event.objects.filter(chat_id=chat_id, chat_seq__in=some)
        found.update((seq or 0, at) for seq, at in rows.values_list("chat_seq", "at"))
    return found


def _at_or_before(chat_id: int, seq: int) -> tuple[int | None, int] | None:
    rows = Event.objects.filter(chat_id=chat_id, chat_seq__lte=seq).order_by("-chat_seq")
    return rows.values_list("chat_seq", "at").first()


def _points(chat_id: int, within: Range) -> list[ReadingPoint]:
    """Thinned to about ``POINTS``."""
    rows = Reading.objects.filter(chat_id=chat_id).order_by("chat_seq")
    inside = rows.filter(chat_seq__gte=within.first, chat_seq__lte=within.last)
    keep = thinned(list(inside.values_list("id", "load")), POINTS)
    found = []
    for start in range(0, len(keep), IN_LIST):
        some = sorted(keep)[start : start + IN_LIST]
        found += list(Reading.objects.filter(id__in=some).values_list(*READING_COLUMNS))
    return sorted((point_of(row) for row in found), key=lambda point: point.chat_seq)


def _attempts(chat_id: int, within: Range) -> list[AttemptView]:
    rows = CompactionAttempt.objects.filter(chat_id=chat_id, first_seq__lte=within.last)
    views = rows.order_by("-first_seq").values_list("view", flat=True)[:MOST]
    found = [ATTEMPT.decode(view) for view in views]
    inside = [v for v in found if v.finished_seq is None or v.finished_seq >= within.first]
    return inside[::-1]


def _latches(chat_id: int, within: Range) -> list[LatchView]:
    rows = Latch.objects.filter(chat_id=chat_id, set_seq__lte=within.last)
    rows = rows.filter(Q(cleared_at=None) | Q(cleared_at__gte=within.first_at))
    views = rows.order_by("-set_seq").values_list("view", flat=True)[:MOST]
    return [LATCH.decode(view) for view in views][::-1]


def _findings(chat_id: int, within: Range) -> list[FindingView]:
    rows = Finding.objects.filter(chat_id=chat_id, since_seq__lte=within.last)
    rows = rows.filter(Q(closed_at=None) | Q(closed_at__gte=within.first_at))
    views = rows.order_by("-since_seq").values_list("view", flat=True)[:MOST]
    return [FINDING.decode(view) for view in views][::-1]


def _commands(chat_id: int, within: Range) -> list[CommandRow]:
    rows = Command.objects.select_related("agent", "chat").filter(chat_id=chat_id)
    rows = rows.filter(created_at__lte=within.last_at)
    rows = rows.filter(Q(ended_at=None) | Q(ended_at__gte=within.first_at))
    return [command_row(row) for row in rows.order_by("-created_at", "-id")[:MOST]][::-1]


def _events(chat_id: int, within: Range, types: Sequence[str]) -> list[EventRow]:
    if not types:
        return []
    rows = Event.objects.filter(chat_id=chat_id, type__in=list(types))
    rows = rows.filter(chat_seq__gte=within.first, chat_seq__lte=within.last)
    return [event_row(row) for row in rows.order_by("-chat_seq")[: 2 * MOST]][::-1]
