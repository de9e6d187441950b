"""One chat in one browser: its regions, and new points for its drawing."""

from __future__ import annotations

from collections.abc import Iterable

from ctxhealth.live.browser import Counts, json_frame
from ctxhealth.live.chats import ChatView, UnknownChat
from ctxhealth.live.service import Live
from ctxhealth.live.shown import Shown

__all__ = ["ChatPage", "UnknownChat"]


class ChatPage:
    """Frames: the regions that differ, and ``moved`` when the log grew.

    ``moved`` says how far the log reaches, so that the page's drawing and its list of events
    fetch what is new; the numbers themselves never travel twice.
    """

    def __init__(self, live: Live, chat: int, *, operate: bool) -> None:
        self._live = live
        self._chat = chat
        self._operate = operate
        self._regions = Shown()
        self._head = -1

    @property
    def due(self) -> float | None:
        return None

    def concerns(self, chats: Iterable[int]) -> bool:
        return self._chat in chats

    def show(self, chats: list[int]) -> None:
        """A chat's page has no rows to choose from."""

    async def check(self) -> None:
        """Raises UnknownChat where there is no such chat."""
        await self._view()

    async def counts(self) -> Counts:
        return {"incidents": await self._live.board.incidents()}

    async def frames(self) -> list[str]:
        view = await self._view()
        regions = await self._live.renderer.chat(view, operate=self._operate)
        frames = ["\n".join(differing)] if (differing := self._regions.differing(regions)) else []
        if view.detail.chat_seq != self._head:
            self._head = view.detail.chat_seq
            frames.append(json_frame("moved", chat=self._chat, chat_seq=self._head))
        return frames

    async def _view(self) -> ChatView:
        return await self._live.chats.view(self._chat)
