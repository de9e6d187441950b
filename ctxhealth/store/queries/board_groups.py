"""Chats of one page of the board that are in trouble for one cause, put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db.models import Count, Q

from ctxhealth.core.incidents_words import say_cause
from ctxhealth.core.presence import ENDED
from ctxhealth.store.models import Incident
from ctxhealth.store.models.incidents import AUTOMATIC
from ctxhealth.store.queries.cause_groups import decode_cause
from ctxhealth.store.queries.silences import silences_active

if TYPE_CHECKING:
    from ctxhealth.store.queries.board import BoardRow

FEWEST = 2  # a cause that one chat has is no group


@dataclass(frozen=True, kw_only=True, slots=True)
class BoardGroup:
    """One cause of several chats. ``chats`` and ``waiting`` (their users) count the whole fleet,
    ``rows`` are the chats of this page that have it; ``since`` its first incident, ms;
    ``silent_until`` where somebody silenced it."""

    id: int
    key: str
    words: str
    chats: int
    waiting: int
    since: int
    owner: str
    rows: tuple[int, ...]
    silent_until: int | None = None


def with_groups(rows: Sequence[BoardRow]) -> tuple[list[BoardRow], list[BoardGroup]]:
    """The rows with their owners, and the causes that they share with other chats."""
    open_ = _open_incidents([row.id for row in rows if row.summary.incident is not None])
    owners = {chat: own or groups or "" for chat, _, own, groups in open_}
    group_of = {chat: group for chat, group, _, _ in open_ if group is not None}
    members: dict[int, list[int]] = {}
    for chat, group in group_of.items():
        members.setdefault(group, []).append(chat)
    groups = _groups(members)
    several = {group.id for group in groups}
    told = [
        replace(row, owner=owners[row.id], group=group_of.get(row.id),
                grouped=group_of.get(row.id) in several)
        if row.id in owners else row
        for row in rows
    ]  # fmt: skip
    return told, groups


def together(rows: Sequence[BoardRow], groups: Iterable[BoardGroup]) -> list[BoardRow]:
    """Each group where its first chat stands; what is in none keeps its order."""
    group_of = {chat: group.id for group in groups for chat in group.rows}
    members: dict[int, list[BoardRow]] = {}
    for row in rows:
        if row.id in group_of:
            members.setdefault(group_of[row.id], []).append(row)
    ordered: list[BoardRow] = []
    for row in rows:
        group = group_of.get(row.id)
        ordered += [row] if group is None else members.pop(group, [])
    return ordered


def _open_incidents(chats: list[int]) -> list[tuple[int, int | None, str, str | None]]:
    """(chat, cause group, the incident's owner, the group's owner)."""
    if not chats:
        return []
    found = Incident.objects.filter(chat__in=chats, kind=AUTOMATIC, closed_at=None)
    return list(found.values_list("chat_id", "group_id", "owner_name", "group__owner_name"))


def _groups(members: dict[int, list[int]]) -> list[BoardGroup]:
    if not members:
        return []
    waits = Q(chat__waiting_since__isnull=False) & ~Q(chat__connection__in=ENDED)
    counted = (
        Incident.objects.filter(group__in=members, closed_at=None)
        .order_by()
        .values_list("group_id", "group__key", "group__cause", "group__opened_at",
                     "group__owner_name")
        .annotate(chats=Count("chat", distinct=True), waiting=Count("chat", filter=waits))
    )  # fmt: skip
    silent = {row.group: row.until for row in silences_active()}
    return [
        BoardGroup(id=pk, key=key, words=say_cause(decode_cause(cause)), since=since, owner=owner,
                   chats=chats, waiting=waiting, rows=tuple(members[pk]),
                   silent_until=silent.get(pk))
        for pk, key, cause, since, owner, chats, waiting in counted
        if chats >= FEWEST
    ]  # fmt: skip
