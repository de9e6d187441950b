"""Chats in full, loaded once however many browsers look at the same one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ctxhealth.core.model import ChatDetail
from ctxhealth.live.board import Board
from ctxhealth.live.caching import Recent
from ctxhealth.live.reads import Reads
from ctxhealth.web.chat_load import load_chat
from ctxhealth.web.chat_page import ChatExtras

VIEWS = 100
MAX_AGE_SECONDS = 10.0


class UnknownChat(Exception):
    """There is no chat of that number."""


@dataclass(frozen=True, eq=False)
class ChatView:
    """A chat as loaded at loop time ``at``, when the board was at ``generation``."""

    detail: ChatDetail
    extras: ChatExtras
    generation: int
    at: float


@dataclass
class Chats:
    """Lives on one event loop."""

    reads: Reads
    board: Board
    loaded: int = 0
    _views: Recent[int, ChatView] = field(default_factory=lambda: Recent(VIEWS))
    _loading: dict[int, asyncio.Task[ChatView]] = field(default_factory=dict)

    async def view(self, chat: int) -> ChatView:
        """The chat as of everything heard so far. Raises UnknownChat."""
        wanted = self.board.heard(chat)
        view = self._views.get(chat)
        if view is None or self._old(view):
            view = await asyncio.shield(self._load_once(chat))
        # A load that somebody else began may be older than what was heard: then once more.
        while view.generation < wanted:
            view = await asyncio.shield(self._load_once(chat))
        return view

    def _old(self, view: ChatView) -> bool:
        return asyncio.get_running_loop().time() > view.at + MAX_AGE_SECONDS

    def _load_once(self, chat: int) -> asyncio.Task[ChatView]:
        loading = self._loading.get(chat)
        if loading is None:
            loading = asyncio.create_task(self._load(chat))
            self._loading[chat] = loading
            loading.add_done_callback(lambda task: self._ended(chat, task))
        return loading

    def _ended(self, chat: int, task: asyncio.Task[ChatView]) -> None:
        self._loading.pop(chat, None)
        if not task.cancelled():
            task.exception()  # Looked at, also where every browser has left meanwhile.

    async def _load(self, chat: int) -> ChatView:
        at, generation = asyncio.get_running_loop().time(), self.board.generation
        found = await self.reads.query(lambda: load_chat(chat))
        if found is None:
            raise UnknownChat
        self.loaded += 1
        view = ChatView(*found, generation, at)
        self._views.put(chat, view)
        return view
