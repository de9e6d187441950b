"""What this process knows of the chats between two queries.

The writer's hooks bring each committed summary; pages come from the database, so that their order
is the one of the first render, and every process can serve them. Everything has a cap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ctxhealth.core.model import ChatSummary
from ctxhealth.live.caching import Recent
from ctxhealth.live.reads import Reads
from ctxhealth.store import queries
from ctxhealth.store.queries import BoardFilters, BoardPage, BoardRow
from ctxhealth.store.unit import ChatChange, CommandChange

PAGE_ROWS = 100
SUMMARIES = 5_000
VERSIONS = 50_000
PAGES = 200
ORIGINS = 1_000
COUNTS_SECONDS = 5.0
MIN_AGE_SECONDS = 1.0
MAX_AGE_SECONDS = 12.0
# A page that takes long to query is queried less often: at most a tenth of one thread each.
AGE_PER_COST = 10


class Heard(NamedTuple):
    """The newest version heard of, and the board's generation when anything was heard."""

    version: int
    generation: int


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
    """Lives on one event loop; changed by ``note``, ``hear`` and its own queries alone.

    ``generation`` counts what was heard: a page queried at an older one may be out of date.
    """

    reads: Reads
    generation: int = 0
    queried: int = 0
    _summaries: Recent[int, tuple[int, ChatSummary]] = field(
        default_factory=lambda: Recent(SUMMARIES)
    )
    _versions: Recent[int, Heard] = field(default_factory=lambda: Recent(VERSIONS))
    _foreign: Recent[str, int] = field(default_factory=lambda: Recent(ORIGINS))
    _pages: Recent[BoardFilters, Loaded] = field(default_factory=lambda: Recent(PAGES))
    _loading: dict[BoardFilters, asyncio.Task[Loaded]] = field(default_factory=dict)
    _outcomes: tuple[float, dict[str, int]] | None = None
    _severities: tuple[float, dict[str, int]] | None = None
    _incidents: tuple[float, int] | None = None

    def note(self, changes: Iterable[ChatChange | CommandChange]) -> dict[int, int]:
        """Commits of this process, oldest first; returns the versions of the chats in them."""
        versions: dict[int, int] = {}
        for change in changes:
            if isinstance(change, ChatChange):
                self._summaries.put(change.chat, (change.version, change.summary))
                versions[change.chat] = change.version
            elif change.chat is not None:
                versions.setdefault(change.chat, self.version(change.chat))
        self._hear(versions)
        return versions

    def hear(self, message: Mapping[str, Any]) -> None:
        """A hint of another process; every consumer of this one passes it on, once counts."""
        origin, serial = message["origin"], message["serial"]
        if serial < (self._foreign.get(origin) or 0):
            return
        self._foreign.put(origin, serial + 1)
        self._hear(dict(zip(message["ids"], message["versions"], strict=True)))

    def version(self, chat: int) -> int:
        """The newest version heard of; 0 where nothing was heard since the start."""
        heard = self._versions.get(chat)
        return heard.version if heard else 0

    def heard(self, chat: int) -> int:
        """The generation in which this chat was last heard of; 0 for never."""
        heard = self._versions.get(chat)
        return heard.generation if heard else 0

    def _hear(self, versions: Mapping[int, int]) -> None:
        self.generation += 1
        for chat, version in versions.items():
            self._versions.put(chat, Heard(max(version, self.version(chat)), self.generation))

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
            loading.add_done_callback(lambda task: self._ended(filters, task))
        return await asyncio.shield(loading)

    def _ended(self, filters: BoardFilters, task: asyncio.Task[Loaded]) -> None:
        self._loading.pop(filters, None)
        if not task.cancelled():
            task.exception()  # Looked at, also where every browser has left meanwhile.

    async def severities(self) -> dict[str, int]:
        """Chats of the whole fleet per severity, at most some seconds old."""
        now = asyncio.get_running_loop().time()
        if self._severities is None or now > self._severities[0] + COUNTS_SECONDS:
            self._severities = (now, await self.reads.query(queries.counts_by_severity))
        return self._severities[1]

    async def incidents(self) -> int:
        """Open incidents of the whole fleet, at most some seconds old."""
        now = asyncio.get_running_loop().time()
        if self._incidents is None or now > self._incidents[0] + COUNTS_SECONDS:
            self._incidents = (now, await self.reads.query(queries.incidents_open_count))
        return self._incidents[1]

    async def outcomes(self) -> dict[str, int]:
        """Compaction outcomes of the fleet's last hour, at most some seconds old."""
        now = asyncio.get_running_loop().time()
        if self._outcomes is None or now > self._outcomes[0] + COUNTS_SECONDS:
            self._outcomes = (now, await self.reads.query(queries.fleet_outcomes))
        return self._outcomes[1]

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
