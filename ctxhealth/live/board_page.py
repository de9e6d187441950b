"""The board in one browser: rows, their order, and the numbers above them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ctxhealth.live.board import PAGE_ROWS, Loaded
from ctxhealth.live.browser import Counts, json_frame
from ctxhealth.live.looks import Look
from ctxhealth.live.matching import matches
from ctxhealth.live.service import Live
from ctxhealth.live.shown import Shown
from ctxhealth.store import queries
from ctxhealth.store.queries import BoardRow
from ctxhealth.store.queries.board_groups import BoardGroup
from ctxhealth.web.filters import filters_of, query_of

MAX_EXTRA = 1_000


class RowMark(NamedTuple):
    """What was sent of a row."""

    version: int
    owner: str
    grouped: bool


def _mark(row: BoardRow) -> RowMark:
    return RowMark(row.version, row.owner, row.grouped)


def _news(row: BoardRow, sent: RowMark | None) -> bool:
    """Something of this row is not on the page yet; an older version never is news."""
    if sent is None:
        return True
    return row.version >= sent.version and _mark(row) != sent


class BoardPage:
    """The first page under the filters, and further rows that the browser says it shows.

    Frames: the header's regions; the rows that changed; the lines of cause groups; ``order``
    with the ids of the first page whenever they changed, the group whose line stands before a row
    (``heads``), rows that no longer belong to this page at all (``gone``), and where the first
    page ends (``next``, a cursor). What ``order`` names has been sent before it. A browser that
    shows no further page is told that a row is gone when it leaves the first; as long as it says
    that the row stands there, the row follows its chat.
    """

    def __init__(self, live: Live, query: Mapping[str, str], *, operate: bool) -> None:
        self._live = live
        self._query = query_of(query)
        self._filters = filters_of(self._query)
        self._operate = operate
        self._loaded: Loaded | None = None
        self._look: Look | None = None
        self._header_of: Loaded | None = None
        self._told: set[int] = set()
        self._gone: set[int] = set()
        self._extra: dict[int, BoardRow | None] = {}
        self._sent: dict[int, RowMark] = {}
        self._order: list[int] = []
        self._heads: dict[int, int] = {}
        self._next: str | None = None
        self._groups = Shown()
        self._header = Shown()

    @property
    def due(self) -> float | None:
        if any(row is None for row in self._extra.values()):
            return 0.0
        if self._look is None:
            return None
        late = self._live.looks.due(self._look)
        return late if late is not None else self._live.board.due(self._look.loaded)

    def concerns(self, chats: Iterable[int]) -> bool:
        """Any change may move a row into this page, or a number above it."""
        return True

    def show(self, chats: list[int]) -> None:
        first, known = set(self._order), self._extra
        self._told = set(chats[:MAX_EXTRA])
        self._extra = {chat: known.get(chat) for chat in self._told if chat not in first}
        self._look = None

    async def counts(self) -> Counts:
        board = self._live.board
        return {**await board.severities(), "incidents": await board.incidents()}

    async def frames(self) -> list[str]:
        look = await self._live.looks.look(self._filters, operate=self._operate)
        if look is self._look:
            return []  # Nobody has looked since, and nothing else was asked for.
        self._look, self._loaded = look, look.loaded
        gone = await self._follow(look)
        extra = [row for chat in self._extra if (row := self._present(chat)) is not None]
        frames = [*await self._header_frames(), *await self._row_frames([*look.rows, *extra], look)]
        frames += await self._group_frames(look.loaded.page.groups)
        return [*frames, *self._order_frames(look, gone)]

    def _present(self, chat: int) -> BoardRow | None:
        row = self._extra[chat]
        return self._live.board.current(row) if row is not None else None

    async def _follow(self, look: Look) -> list[int]:
        """Rows beyond the first page, as the browser says that it shows them; those now gone."""
        first = set(look.order)
        left = self._told.intersection(self._order) - first
        self._extra.update(dict.fromkeys(left))
        gone = await self._load_extra(first)
        gone += [
            chat
            for chat in self._extra
            if (row := self._present(chat)) is not None and not matches(self._filters, row)
        ]
        for chat in gone:
            self._extra.pop(chat, None)
        if len(self._told) <= PAGE_ROWS:
            standing = {*self._extra, *self._order} - first - self._gone
            gone += sorted(standing.difference(gone))
        # A row that comes back may have left the browser's page: it is sent anew.
        for chat in self._gone & first:
            self._sent.pop(chat, None)
        self._gone = (self._gone | set(gone)) - first
        return gone

    def _order_frames(self, look: Look, gone: list[int]) -> list[str]:
        self._gone &= self._sent.keys()
        page = (look.order, look.heads, look.loaded.page.next)
        if page == (self._order, self._heads, self._next) and not gone:
            return []
        self._order, self._heads, self._next = page
        return [json_frame("order", ids=look.order, gone=gone, heads=look.heads, next=self._next)]

    async def _row_frames(self, shown: list[BoardRow], look: Look) -> list[str]:
        sent, html = self._sent, look.html
        changed = [row for row in shown if _news(row, sent.get(row.id))]
        new = {row.id for row in changed}
        self._sent = {r.id: _mark(r) if r.id in new else sent[r.id] for r in shown}
        if not changed:
            return []
        further = [row for row in changed if row.id not in html]
        regions = await self._live.renderer.rows(further, operate=self._operate)
        told = [html[row.id] for row in changed if row.id in html]
        return ["\n".join([*told, *regions.values()])]

    async def _group_frames(self, groups: list[BoardGroup]) -> list[str]:
        alone = self._filters.cause is not None
        regions = await self._live.renderer.groups(groups, alone=alone)
        self._groups.keep(regions)
        differing = self._groups.differing(regions)
        return ["\n".join(differing)] if differing else []

    async def _header_frames(self) -> list[str]:
        """Once per query of the page, whose counts it shows."""
        if self._loaded is None or self._loaded is self._header_of:
            return []
        self._header_of = self._loaded
        outcomes = await self._live.board.outcomes()
        regions = await self._live.renderer.header(
            self._loaded.page.counts_by_state, outcomes, self._query
        )
        differing = self._header.differing(regions)
        return ["\n".join(differing)] if differing else []

    async def _load_extra(self, first: set[int]) -> list[int]:
        """Rows that the browser shows beyond the first page; returns the chats that are gone."""
        self._extra = {chat: row for chat, row in self._extra.items() if chat not in first}
        missing = [chat for chat, row in self._extra.items() if row is None or self._behind(row)]
        if not missing:
            return []
        found = await self._live.reads.query(lambda: queries.board_rows(missing))
        by_id = {row.id: row for row in found}
        # The browser may have said meanwhile that some of them left its page.
        self._extra.update({chat: by_id.get(chat) for chat in missing if chat in self._extra})
        return [chat for chat in missing if chat not in by_id]

    def _behind(self, row: BoardRow) -> bool:
        """A newer version was heard of than this process has the summary of."""
        board = self._live.board
        return board.current(row).version < (board.version(row.id) or 0)
