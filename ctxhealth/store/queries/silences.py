"""Causes that are silent for now: still shown, no longer counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from ctxhealth.core.incidents_words import say_cause
from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import Incident, Silence
from ctxhealth.store.queries.cause_groups import decode_cause


@dataclass(frozen=True, kw_only=True, slots=True)
class SilenceRow:
    """``words`` says the cause; ``until`` server ms."""

    id: int
    group: int
    words: str
    until: int
    reason: str
    by: str
    at: int


def silences_active(now: int | None = None) -> list[SilenceRow]:
    """Those in force, the first to expire first."""
    rows = _active(now).select_related("group").order_by("until", "id")
    return [
        SilenceRow(
            id=row.pk,
            group=row.group_id,
            words=say_cause(decode_cause(row.group.cause)),
            until=row.until,
            reason=row.reason,
            by=row.by_name,
            at=row.at,
        )
        for row in rows
    ]


def silenced_groups(now: int | None = None) -> frozenset[int]:
    """Ids of the causes that are silent."""
    return frozenset(_active(now).values_list("group_id", flat=True))


def silenced_chats(now: int | None = None) -> QuerySet[Incident, Any]:
    """A sub-query: ids of the chats whose open incident is of a silent cause."""
    return _silenced(now).values("chat_id")


def silenced_incidents(now: int | None = None) -> QuerySet[Incident, Any]:
    """A sub-query: ids of the open incidents of a silent cause."""
    return _silenced(now).values("id")


def _silenced(now: int | None) -> QuerySet[Incident]:
    return Incident.objects.filter(closed_at=None, group__in=_active(now).values("group"))


def _active(now: int | None) -> QuerySet[Silence]:
    moment = now_ms() if now is None else now
    return Silence.objects.filter(ended_at=None, until__gt=moment)
