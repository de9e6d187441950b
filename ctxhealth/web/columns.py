"""The board's columns: what a head says, what it sorts by, and where its link leads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ctxhealth.web.filters import Select, link

ASCENDING, DESCENDING = "ascending", "descending"


@dataclass(frozen=True, slots=True)
class Column:
    """``sort`` is empty where the column has no order; ``first`` is how its own order runs."""

    css: str
    label: str
    sort: str = ""
    first: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """``aria`` is set on the column that the rows stand by; ``query`` is the link's."""

    column: Column
    query: str = ""
    aria: str = ""


COLUMNS = (
    Column("c-state", "State", "state", DESCENDING),
    Column("c-chat", "Chat", "title", ASCENDING),
    Column("c-strip", "Window"),
    Column("c-load num", "Load / usable", "load", DESCENDING),
    Column("c-room num", "To trigger", "headroom", ASCENDING),
    Column("c-last", "Last compaction", "compaction", ASCENDING),
    Column("c-latch", "Latch"),
    Column("c-wait", "Waiting", "waiting", DESCENDING),
    Column("c-reply", "Replies"),
    Column("c-trend", "Trend"),
)
# By state is what the board does unasked: its address says nothing of it.
_UNASKED = "state"
_SORT_WORDS = {
    "": "worst first",
    "load": "fullest first",
    "headroom": "nearest to trigger first",
    "compaction": "newest compaction first",
    "waiting": "longest waiting first",
    "title": "by title",
    "-state": "calmest first",
    "-load": "emptiest first",
    "-headroom": "farthest from trigger first",
    "-compaction": "oldest compaction first",
    "-waiting": "newest waiting first",
    "-title": "by title, backwards",
}


def heads_of(query: Mapping[str, str]) -> list[Head]:
    """A link turns the order of its own column round, or starts that of another one."""
    standing = query.get("sort", "") or _UNASKED
    return [_head(column, standing, query) for column in COLUMNS]


def _head(column: Column, standing: str, query: Mapping[str, str]) -> Head:
    if not column.sort:
        return Head(column)
    own = standing.removeprefix("-") == column.sort
    wanted = f"-{column.sort}" if standing == column.sort else column.sort
    asked = "" if wanted == _UNASKED else wanted
    return Head(column, link(query, sort=asked), _aria(column, standing) if own else "")


def _aria(column: Column, standing: str) -> str:
    turned = {ASCENDING: DESCENDING, DESCENDING: ASCENDING}
    return turned[column.first] if standing.startswith("-") else column.first


def sort_select(query: Mapping[str, str]) -> Select:
    """The orders where no heads are shown; a reverse one only while it stands."""
    chosen = query.get("sort", "")
    kept = {name for name in _SORT_WORDS if name and not name.startswith("-")} | {chosen}
    options = tuple((name, _SORT_WORDS[name]) for name in _SORT_WORDS if name and name in kept)
    return Select("sort", "Order", _SORT_WORDS[""], options, chosen)


def sort_words(query: Mapping[str, str]) -> str:
    return _SORT_WORDS[query.get("sort", "")]
