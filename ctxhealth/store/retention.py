"""Deletes chats that have been quiet for longer than the days an admin set.

A chat goes whole, with its log and everything folded from it, so that what is left is still what
its log gives. It stays while anything holds it: an incident, an open command, a younger sub-agent.
Streams keep their heads, so that an agent which sends an old event again is told that it is known;
``Stream.trimmed`` says how many events went. Audit lines stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum

from ctxhealth.store import unit
from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import (
    Chat,
    Checkpoint,
    Command,
    CompactionAttempt,
    Event,
    Finding,
    Incident,
    Item,
    Latch,
    Reading,
    Stream,
)
from ctxhealth.store.projects import default_project
from ctxhealth.store.queries.settings import retention_days
from ctxhealth.store.through import call
from ctxhealth.store.writes.audit import audit

DAY_MS = 86_400_000
_FOLDED = (CompactionAttempt, Latch, Finding, Item, Reading, Checkpoint)


class Forecast(NamedTuple):
    """What a run would delete now, and how many quiet chats an incident keeps."""

    chats: int
    events: int
    pinned: int


def forecast(*, days: int) -> Forecast:
    """For ``days`` of retention, whether or not that is set."""
    due = _due(days).aggregate(chats=Count("id"), events=Sum("chat_seq", default=0))
    pinned = _quiet(days).filter(_incident()).count()
    return Forecast(due["chats"], due["events"], pinned)


def trim(pause: Callable[[float], bool]) -> int:
    """Delete what is due, a chat at a time; how many went. ``pause`` True ends it early."""
    days = retention_days(project=default_project().pk)
    if days is None:
        return 0
    gone = 0
    for chat in _ids(days):
        begun = now_ms()
        gone += call(_delete, chat, days)
        if pause((now_ms() - begun) / 1_000):
            break
    if gone:
        audit(action="retention.trim", result="done", target=f"{gone} chats", detail={"days": days})
    return gone


def _ids(days: int) -> Iterator[int]:
    yield from list(_due(days).order_by("id").values_list("id", flat=True))


def _quiet(days: int) -> QuerySet[Chat]:
    """Chats without an event for so long, by the server's clock and by their own."""
    before = now_ms() - days * DAY_MS
    newer = Event.objects.filter(chat=OuterRef("pk"), chat_seq=OuterRef("chat_seq"))
    return Chat.objects.filter(opened_at__lt=before).exclude(
        Exists(newer.filter(Q(received__gte=before) | Q(at__gte=before)))
    )


def _due(days: int) -> QuerySet[Chat]:
    young = Chat.objects.filter(parent=OuterRef("pk")).exclude(pk__in=_quiet(days).values("pk"))
    held = Command.objects.filter(chat=OuterRef("pk"), open=True)
    return _quiet(days).exclude(_incident()).exclude(Exists(young)).exclude(Exists(held))


def _incident() -> Exists:
    """Whether an incident or a review pins the chat."""
    return Exists(Incident.objects.filter(chat=OuterRef("pk")))


def _delete(chat: int, days: int) -> int:
    """One chat in one transaction, if it is still due."""
    if not _due(days).filter(pk=chat).exists():
        return 0
    rows = Event.objects.filter(chat_id=chat)
    by_stream = rows.exclude(stream=None).order_by().values("stream").annotate(n=Count("id"))
    for row in list(by_stream):
        Stream.objects.filter(pk=row["stream"]).update(trimmed=F("trimmed") + row["n"])
    rows.delete()
    for table in _FOLDED:
        table._default_manager.filter(chat_id=chat).delete()
    Chat.objects.filter(pk=chat).delete()
    work = unit.current()
    if work is not None:
        work.states.drop(chat)
    return 1
