"""What every open board under the same filters shows now, worked out once for all of them.

Twenty browsers that look four times a second would else put the same rows together eighty times.
Where only one looks, it gets the present; where several do, a look serves them all for a moment,
and a page whose look was older than the newest commit looks again when that moment is over. The
moment grows with what changed: a page of which much is new at once is not read any faster.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ctxhealth.live.board import Board, Loaded
from ctxhealth.live.caching import Recent
from ctxhealth.live.render import Renderer
from ctxhealth.store.queries import BoardFilters, BoardRow
from ctxhealth.web.fragments import heads_of

SHARED_SECONDS = 0.25
MAX_SHARED_SECONDS = 1.0
# So many changed rows a second are more than anybody follows.
ROWS_PER_SECOND = 25
LOOKS = 200

Key = tuple[BoardFilters, bool]


@dataclass(frozen=True, eq=False)
class Look:
    """The first page of a board as of ``generation``; ``html`` of each row by the chat's id."""

    loaded: Loaded
    generation: int
    until: float
    rows: list[BoardRow]
    order: list[int]
    heads: dict[int, int]
    html: dict[int, str]


class Looks:
    """Lives on one event loop. ``several`` is set by who counts the open pages."""

    def __init__(self, board: Board, renderer: Renderer) -> None:
        self.several = False
        self._board = board
        self._renderer = renderer
        self._looks: Recent[Key, Look] = Recent(LOOKS)
        self._looking: dict[Key, asyncio.Task[Look]] = {}

    async def look(self, filters: BoardFilters, *, operate: bool) -> Look:
        key = (filters, operate)
        found = self._looks.get(key)
        if found is not None and asyncio.get_running_loop().time() < found.until:
            return found
        looking = self._looking.get(key)
        if looking is None:
            looking = asyncio.create_task(self._look(key))
            self._looking[key] = looking
            looking.add_done_callback(lambda task: self._ended(key, task))
        return await asyncio.shield(looking)

    def due(self, look: Look) -> float | None:
        """When a look that is older than the newest commit is worth another one."""
        return look.until if look.generation != self._board.generation else None

    def _ended(self, key: Key, task: asyncio.Task[Look]) -> None:
        self._looking.pop(key, None)
        if not task.cancelled():
            task.exception()  # Looked at, also where every browser has left meanwhile.

    async def _look(self, key: Key) -> Look:
        filters, operate = key
        loaded = await self._board.page(filters)
        generation = self._board.generation
        rows = [self._board.current(row) for row in loaded.page.rows]
        regions = await self._renderer.rows(rows, operate=operate)
        now = asyncio.get_running_loop().time()
        moment = pause_for(rows, self._looks.get(key)) if self.several else 0.0
        look = Look(
            loaded=loaded,
            generation=generation,
            until=now + moment,
            rows=rows,
            order=[row.id for row in rows],
            heads=heads_of(rows, loaded.page.groups),
            html=dict(zip((row.id for row in rows), regions.values(), strict=True)),
        )
        self._looks.put(key, look)
        return look


def pause_for(rows: list[BoardRow], before: Look | None) -> float:
    """Seconds for which a look with these rows serves everybody, by what is new in them."""
    known = {row.id: row.version for row in before.rows} if before else {}
    changed = sum(known.get(row.id) != row.version for row in rows)
    return min(max(SHARED_SECONDS, changed / ROWS_PER_SECOND), MAX_SHARED_SECONDS)
