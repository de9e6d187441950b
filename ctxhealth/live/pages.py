"""What each kind of page shows, and the frames that bring a browser up to date with it."""

from __future__ import annotations

from ctxhealth.live.agents_page import AgentsPage
from ctxhealth.live.board_page import BoardPage
from ctxhealth.live.browser import LivePage
from ctxhealth.live.chat_page import ChatPage, UnknownChat
from ctxhealth.live.service import Live
from ctxhealth.live.subscription import Subscription

__all__ = ["UnknownChat", "open_page"]


async def open_page(live: Live, asked: Subscription, *, operate: bool) -> LivePage:
    """The page that a socket asks for. Raises UnknownChat."""
    if asked.chat is not None:
        page = ChatPage(live, asked.chat, operate=operate)
        await page.check()
        return page
    if asked.view == "agents":
        return AgentsPage(live, dict(asked.filters).get("q", "")[:200])
    return BoardPage(live, dict(asked.filters), operate=operate)
