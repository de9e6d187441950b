"""The agents in one browser: one table, looked at again every few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ctxhealth.live.browser import Counts
from ctxhealth.live.service import Live
from ctxhealth.live.shown import Shown

LOOK_SECONDS = 2.0


class AgentsPage:
    """Connections change without any chat changing, so this page looks by itself."""

    def __init__(self, live: Live, text: str = "") -> None:
        self._live = live
        self._text = text
        self._regions = Shown()
        self._looked = 0.0

    @property
    def due(self) -> float | None:
        return self._looked + LOOK_SECONDS

    def concerns(self, chats: Iterable[int]) -> bool:
        """Its own look every few seconds is often enough for counters."""
        return False

    def show(self, chats: list[int]) -> None:
        """This page has no rows of chats."""

    async def counts(self) -> Counts:
        return {"incidents": await self._live.board.incidents()}

    async def frames(self) -> list[str]:
        self._looked = asyncio.get_running_loop().time()
        regions = await self._live.renderer.agents(self._text)
        differing = self._regions.differing(regions)
        return ["\n".join(differing)] if differing else []
