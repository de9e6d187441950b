"""The board's orders: which keys a sort compares, and where a page of it continues.

Every key is never null, so a cursor is the last row's keys. What is not known stands last
whichever way a column is sorted.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from django.db.models import BigIntegerField, Case, Expression, F, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Lower, NullIf

from ctxhealth.core.model import Connection
from ctxhealth.store.models import Chat

FAR = 2**53
LATER = 2**51  # beyond every time, and short of FAR
DEFAULT = ""
_NOBODY_THERE = (Connection.READ_ONLY, Connection.IMPORTED, Connection.CLOSED)


class BadCursor(ValueError):
    """A cursor that this server did not make, or made for another order."""


class BadSort(ValueError):
    """No order of the board has this name."""


class Key(NamedTuple):
    """One thing compared; ``down`` puts the greatest first."""

    name: str
    value: Expression | F
    text: bool = False
    down: bool = False


def _big(number: int) -> Value:
    """A number typed as 64 bits: as a plain integer no row would compare equal to ``FAR``."""
    return Value(number, output_field=BigIntegerField())


def _known_first(value: Expression | F) -> Coalesce:
    return Coalesce(value, _big(FAR), output_field=BigIntegerField())


def _least(column: str) -> Coalesce:
    return _known_first(F(column))


def _most(column: str) -> Coalesce:
    return _known_first(_big(0) - F(column))


def _waiting(sign: int) -> Coalesce:
    """Users of chats that are going on before those whom a transcript or an ended chat left."""
    there = F("waiting_since") * _big(sign)
    gone = When(connection__in=_NOBODY_THERE, then=there + _big(LATER))
    return _known_first(Case(gone, default=there, output_field=BigIntegerField()))


_SEVERITY = Key("severity", F("severity_rank"))
_WAITS = Key("waits", _waiting(1))
_ROOM = Key("room", _least("headroom_trigger"))
_ID = Key("key", F("id"))
_TITLE = Key("named", Lower(Coalesce(NullIf(F("title"), Value("")), F("external_id"))), text=True)


def _by(value: Expression) -> tuple[Key, ...]:
    return (Key("by", value), _SEVERITY, _ID)


# A column's own direction shows first what needs somebody; a minus turns it round.
ORDERS: dict[str, tuple[Key, ...]] = {
    DEFAULT: (_SEVERITY, _WAITS, _ROOM, _ID),
    "-state": (_SEVERITY._replace(down=True), _WAITS, _ROOM, _ID),
    "title": (_TITLE, _ID),
    "-title": (_TITLE._replace(down=True), _ID),
    "load": _by(_most("load_share")),
    "-load": _by(_least("load_share")),
    "headroom": _by(_least("headroom_trigger")),
    "-headroom": _by(_most("headroom_trigger")),
    "compaction": _by(_most("compacted_at")),
    "-compaction": _by(_least("compacted_at")),
    "waiting": _by(_waiting(1)),
    "-waiting": _by(_waiting(-1)),
}


def order_of(sort: str) -> tuple[Key, ...]:
    """Raises BadSort."""
    try:
        return ORDERS[sort]
    except KeyError:
        raise BadSort(f"sort: must be one of {', '.join(filter(None, ORDERS))}") from None


def ordered(chats: QuerySet[Chat], order: Sequence[Key]) -> QuerySet[Chat]:
    """With every key as an annotation of its name."""
    named = chats.annotate(**{key.name: key.value for key in order})
    return named.order_by(*(f"-{key.name}" if key.down else key.name for key in order))


def after(order: Sequence[Key], values: Sequence[int | str]) -> Q:
    """Rows behind the one with these keys."""
    found = Q()
    equal = Q()
    for key, value in zip(order, values, strict=True):
        found |= equal & Q((f"{key.name}__{'lt' if key.down else 'gt'}", value))
        equal &= Q((key.name, value))
    return found


def write_cursor(sort: str, values: Sequence[Any]) -> str:
    text = msgspec.json.encode([sort, *values])
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def read_cursor(cursor: str, sort: str) -> list[int | str]:
    """The keys of the row to continue behind. Raises BadCursor."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        raw = base64.urlsafe_b64decode(padded.encode("ascii"))
        made_for, *values = msgspec.json.decode(raw, type=list[int | str])
    except (binascii.Error, ValueError, msgspec.MsgspecError, UnicodeError):
        raise BadCursor("cursor: not one of this server's") from None
    order = order_of(sort)
    types = [str if key.text else int for key in order]
    if made_for != sort or [type(value) for value in values] != types:
        raise BadCursor("cursor: made for another order")
    if any(isinstance(value, int) and abs(value) > FAR for value in values):
        raise BadCursor("cursor: not one of this server's")
    return values
