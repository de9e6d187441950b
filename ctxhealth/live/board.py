"""What this process knows of the chats between two queries.

The writer's hooks bring each committed summary; pages come from the database, so that their order
is the one of the first render, and every process can serve them. Everything has a cap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ctxhealth.core.model import ChatSummary
from ctxhealth.live.caching import Recent
from ctxhealth.live.reads import Reads
from ctxhealth.store import queries
from ctxhealth.store.queries import BoardFilters, BoardPage, BoardRow

PAGE_ROWS = 100
SUMMARIES = 5_000
VERSIONS = 50_000
PAGES = 200
MIN_AGE_SECONDS = 1.0
MAX_AGE_SECONDS = 12.0
# A page that takes long to query is queried less often: at most a tenth of one thread each.
AGE_PER_COST = 10


class Change(Protocol):
    """What the writer says after a commit (``ChatChange``)."""

    @property
    def chat_pk(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def summary(self) -> ChatSummary: ...


@dataclass
class Loaded:
    """A page of the board as queried: ``generation`` and ``at`` tell how old it is."""

    page: BoardPage
    generation: int
    at: float
    cost: float

    def fresh_until(self) -> float:
        return self.at + max(MIN_AGE_SECONDS, AGE_PER_COST * self.cost)


@dataclass
class Board:
    """Lives on one event loop; only ``note`` and ``hear`` change it, and its own queries."""

    reads: Reads
    generation: int = 0
    queried: int = 0
    _summaries: Recent[int, tuple[int, ChatSummary]] = field(
        default_factory=lambda: Recent(SUMMARIES)
    )
    _versions: Recent[int, int] = field(default_factory=lambda: Recent(VERSIONS))
    _pages: Recent[BoardFilters, Loaded] = field(default_factory=lambda: Recent(PAGES))
    _loading: dict[BoardFilters, asyncio.Task[Loaded]] = field(default_factory=dict)

    def note(self, changes: Iterable[Change]) -> None:
        """Commits of this process, oldest first."""
        for change in changes:
            self._summaries.put(change.chat_pk, (change.version, change.summary))
            self._versions.put(change.chat_pk, change.version)
        self.generation += 1

    def hear(self, ids: Sequence[int], versions: Sequence[int]) -> None:
        """A hint: it tells something new only where another process made the commit."""
        newer = False
        for chat, version in zip(ids, versions, strict=True):
            if version > (self._versions.get(chat) or 0):
                self._versions.put(chat, version)
                newer = True
        self.generation += newer

    def version(self, chat: int) -> int | None:
        """The newest version heard of; None where nothing was heard since the start."""
        return self._versions.get(chat)

    def current(self, row: BoardRow) -> BoardRow:
        """The row with the newest summary this process has."""
        known = self._summaries.get(row.id)
        if known is None or known[0] <= row.version:
            return row
        return replace(row, version=known[0], summary=known[1])

    async def page(self, filters: BoardFilters) -> Loaded:
        """The first page under these filters, shared by every browser that has them."""
        loaded = self._pages.get(filters)
        if loaded is not None and not self._stale(loaded):
            return loaded
        loading = self._loading.get(filters)
        if loading is None:
            loading = asyncio.create_task(self._load(filters))
            self._loading[filters] = loading
            loading.add_done_callback(lambda _: self._loading.pop(filters, None))
        return await asyncio.shield(loading)

    def due(self, loaded: Loaded) -> float | None:
        """When a page that is older than the newest commit may be queried again."""
        return loaded.fresh_until() if loaded.generation != self.generation else None

    def _stale(self, loaded: Loaded) -> bool:
        now = asyncio.get_running_loop().time()
        if loaded.generation == self.generation:
            return now > loaded.at + MAX_AGE_SECONDS
        return now >= loaded.fresh_until()

    async def _load(self, filters: BoardFilters) -> Loaded:
        loop = asyncio.get_running_loop()
        started, generation = loop.time(), self.generation
        page = await self.reads.query(lambda: queries.board_page(filters, None, PAGE_ROWS))
        self.queried += 1
        loaded = Loaded(page, generation, started, loop.time() - started)
        self._pages.put(filters, loaded)
        return loaded
