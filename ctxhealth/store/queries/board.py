"""The board: pages of chats, worst first, with filters and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.db.models import Count, Q, QuerySet

from ctxhealth.core.model import ChatSummary
from ctxhealth.core.presence import ENDED
from ctxhealth.store.models import Chat, Incident
from ctxhealth.store.queries.board_groups import BoardGroup, together, with_groups
from ctxhealth.store.queries.board_order import (
    DEFAULT,
    after,
    order_of,
    ordered,
    read_cursor,
    write_cursor,
)
from ctxhealth.store.queries.silences import silenced_chats

MAX_PAGE = 500
SEVERITIES = ("critical", "warning", "info", "none")  # by severity_rank
_SUMMARY: msgspec.json.Decoder[ChatSummary] = msgspec.json.Decoder(ChatSummary)


@dataclass(frozen=True, kw_only=True, slots=True)
class BoardFilters:
    """What the board shows; empty means all. ``q`` searches title, chat id, agent and model.

    ``cause`` is the number of a cause group, ``sort`` one of ``board_order.ORDERS``.
    """

    states: tuple[str, ...] = ()
    agent: str = ""
    model: str = ""
    outcome: str = ""
    latched: bool | None = None
    waiting: bool | None = None
    cause: int | None = None
    q: str = ""
    sort: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class BoardRow:
    """``owner`` has taken the chat's open incident, or its cause; empty for nobody. ``group`` is
    the number of that cause, ``grouped`` whether other chats have it too."""

    id: int
    agent: str
    runtime: str
    external_id: str
    version: int
    summary: ChatSummary
    owner: str = ""
    group: int | None = None
    grouped: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class BoardPage:
    """``counts_by_state`` and ``total`` obey every filter but the states; ``matching`` all.

    ``groups`` are causes that rows of this page share with other chats; worst first, the rows
    of a group stand together.
    """

    rows: list[BoardRow]
    next: str | None
    counts_by_state: dict[str, int] = field(default_factory=dict)
    total: int = 0
    matching: int = 0
    groups: list[BoardGroup] = field(default_factory=list)


def decode_summary(text: str) -> ChatSummary:
    return _SUMMARY.decode(text)


def board_page(
    filters: BoardFilters | None = None, cursor: str | None = None, limit: int = 100
) -> BoardPage:
    """One page; unsorted: severity, then the longest waiting user, then headroom to the trigger.

    Raises BadCursor and BadSort.
    """
    filters = filters or BoardFilters()
    limit = max(1, min(limit, MAX_PAGE))
    unstated = _filtered(Chat.objects.all(), filters)
    chats = unstated.filter(state__in=filters.states) if filters.states else unstated
    order = order_of(filters.sort)
    chats = ordered(chats, order)
    if cursor:
        chats = chats.filter(after(order, read_cursor(cursor, filters.sort)))
    keys = [key.name for key in order]
    found = list(chats.values_list(*_ROW_COLUMNS, *keys)[: limit + 1])
    counts = dict(unstated.order_by().values_list("state").annotate(n=Count("id")))
    rows, groups = with_groups([_row(values) for values in found[:limit]])
    groups = groups if filters.sort == DEFAULT else []
    return BoardPage(
        rows=together(rows, groups),
        groups=groups,
        next=_next(filters.sort, found[limit - 1]) if len(found) > limit else None,
        counts_by_state=counts,
        total=sum(counts.values()),
        matching=sum(
            n for state, n in counts.items() if not filters.states or state in filters.states
        ),
    )


def board_rows(ids: Iterable[int]) -> list[BoardRow]:
    """Rows of these chats, in no order; ids that do not exist are left out."""
    wanted = list(ids)
    rows: list[BoardRow] = []
    for start in range(0, len(wanted), 500):
        chats = Chat.objects.filter(id__in=wanted[start : start + 500])
        rows.extend(_row(values) for values in chats.values_list(*_ROW_COLUMNS))
    return with_groups(rows)[0]


def board_versions(after_id: int = 0, limit: int = 10_000) -> dict[int, int]:
    """``{chat: version}`` in the order of ids, for a resync in chunks."""
    rows = Chat.objects.filter(id__gt=after_id).order_by("id").values_list("id", "version")
    return dict(rows[:limit])


def counts_by_severity() -> dict[str, int]:
    """Chats per severity of their worst open finding; ``none`` for those without one.

    Chats of a silenced cause are counted in none: this is what needs somebody.
    """
    heard = Chat.objects.exclude(id__in=silenced_chats())
    counts = dict(heard.order_by().values_list("severity_rank").annotate(n=Count("id")))
    return {name: counts.get(rank, 0) for rank, name in enumerate(SEVERITIES)}


def filter_choices() -> dict[str, list[str]]:
    """What the filters can be set to: agents and models that have chats."""
    agents = Chat.objects.values_list("agent__name", flat=True).distinct()
    models = Chat.objects.exclude(model="").values_list("model", flat=True).distinct()
    return {"agents": sorted(agents), "models": sorted(models)}


_ROW_COLUMNS = ("id", "agent__name", "agent__runtime", "external_id", "version", "summary")


def _row(values: Sequence[Any]) -> BoardRow:
    pk, agent, runtime, external_id, version, summary = values[:6]
    return BoardRow(
        id=pk,
        agent=agent,
        runtime=runtime,
        external_id=external_id,
        version=version,
        summary=decode_summary(summary),
    )


def _filtered(chats: QuerySet[Chat], filters: BoardFilters) -> QuerySet[Chat]:
    exact = {"agent__name": filters.agent, "model": filters.model, "last_outcome": filters.outcome}
    chats = chats.filter(**{column: value for column, value in exact.items() if value})
    if filters.latched is not None:
        chats = chats.filter(latched=filters.latched)
    if filters.waiting is not None:
        waits = Q(waiting_since__isnull=False) & ~Q(connection__in=ENDED)
        chats = chats.filter(waits if filters.waiting else ~waits)
    if filters.cause is not None:
        troubled = Incident.objects.filter(closed_at=None, group=filters.cause)
        chats = chats.filter(id__in=troubled.values("chat"))
    for word in filters.q.split()[:8]:
        chats = chats.filter(
            Q(title__icontains=word)
            | Q(external_id__icontains=word)
            | Q(agent__name__icontains=word)
            | Q(model__icontains=word)
        )
    return chats


def _next(sort: str, row: Sequence[Any]) -> str:
    return write_cursor(sort, row[len(_ROW_COLUMNS) :])
