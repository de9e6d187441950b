"""Causes that chats are in trouble for now, each once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from ctxhealth.core.incidents_model import Cause
from ctxhealth.core.incidents_words import say_cause
from ctxhealth.store.models import CauseGroup, Incident

MOST = 500
_CAUSE: msgspec.json.Decoder[Cause] = msgspec.json.Decoder(Cause)


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupRow:
    """One cause. ``chats`` are the ids of those in trouble for it now, ``waiting`` how many of
    their users wait; ``since`` its first incident, ``count`` all of them, closed ones too."""

    id: int
    key: str
    cause: Cause
    words: str
    chats: tuple[int, ...]
    waiting: int
    since: int
    closed_at: int | None
    alerted_at: int | None
    count: int
    owner: str
    owned_at: int | None


def cause_groups_open(*, project: int | None = None) -> list[GroupRow]:
    """The causes of now: most waiting users first, then most chats, then the oldest."""
    groups = CauseGroup.objects.filter(closed_at=None)
    if project is not None:
        groups = groups.filter(project_id=project)
    rows = group_rows(groups.order_by("opened_at", "id")[:MOST])
    return sorted(rows, key=lambda row: (-row.waiting, -len(row.chats), row.since))


def cause_group(group_id: int) -> GroupRow | None:
    return next(iter(group_rows(CauseGroup.objects.filter(id=group_id))), None)


def group_rows(found: Iterable[CauseGroup]) -> list[GroupRow]:
    groups = list(found)
    open_ = Incident.objects.filter(group__in=[group.pk for group in groups], closed_at=None)
    chats: dict[int, list[int]] = {}
    waiting: dict[int, int] = {}
    columns = ("group_id", "chat_id", "chat__waiting_since")
    for group, chat, since in open_.order_by("opened_at", "id").values_list(*columns):
        chats.setdefault(group, []).append(chat)
        waiting[group] = waiting.get(group, 0) + (since is not None)
    return [_row(group, chats.get(group.pk, []), waiting.get(group.pk, 0)) for group in groups]


def decode_cause(text: str) -> Cause:
    return _CAUSE.decode(text)


def _row(group: CauseGroup, chats: list[int], waiting: int) -> GroupRow:
    cause = decode_cause(group.cause)
    return GroupRow(
        id=group.pk,
        key=group.key,
        cause=cause,
        words=say_cause(cause),
        chats=tuple(chats),
        waiting=waiting,
        since=group.opened_at,
        closed_at=group.closed_at,
        alerted_at=group.alerted_at,
        count=group.count,
        owner=group.owner_name,
        owned_at=group.owned_at,
    )
