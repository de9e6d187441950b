"""The browsers' websocket: a stock Channels consumer whose handlers only mark."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import msgspec
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from ctxhealth.live import hints
from ctxhealth.live.browser import Browser, BrowserLeft, LivePage, TooSlow
from ctxhealth.live.identity import STRANGER, Identity, identify
from ctxhealth.live.pages import UnknownChat, open_page
from ctxhealth.live.service import Live
from ctxhealth.live.subscription import BadSubscription, parse_subscription
from ctxhealth.store.through import AWAY

logger = logging.getLogger(__name__)

# 1012 and 1013 mean "come back"; the 4000s mean "do not, as you are".
CLOSE_RESTART = 1012
CLOSE_OVERLOAD = 1013
CLOSE_BAD_REQUEST = 4400
CLOSE_SIGN_IN = 4401
CLOSE_NO_CHAT = 4404
CLOSE_TIMEOUT_SECONDS = 2
MAX_FRAME = 16_384
MAX_SHOWN = 1_000


class Shown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one frame a browser sends: ids of the chats whose rows stand on its page."""

    show: list[int]


SHOWN: msgspec.json.Decoder[Shown] = msgspec.json.Decoder(Shown)


class UiConsumer(AsyncWebsocketConsumer):
    """Accepts people with a role, joins the groups, and leaves the sending to a Browser.

    ``live`` gives what this process's pages share; it is asked once per socket.
    """

    identity: Identity = STRANGER
    browser: Browser | None = None
    sending: asyncio.Task[None] | None = None

    def __init__(self, *, live: Callable[[], Live]) -> None:
        super().__init__()
        self.live = live()

    async def connect(self) -> None:
        await self.accept()
        try:
            await self.open()
        except AWAY:
            await self.close(CLOSE_OVERLOAD, "the database is away")

    async def open(self) -> None:
        self.identity = await self.identify()
        if self.identity.role is None:
            await self.close(CLOSE_SIGN_IN, "sign in")
            return
        try:
            asked = parse_subscription(self.scope["query_string"])
            page = await open_page(self.live, asked, operate=self.identity.may_operate)
        except BadSubscription as error:
            await self.close(CLOSE_BAD_REQUEST, str(error)[:120])
        except UnknownChat:
            await self.close(CLOSE_NO_CHAT, "no such chat")
        else:
            await self.begin(page)

    async def identify(self) -> Identity:
        cookie = self.scope["cookies"].get(settings.SESSION_COOKIE_NAME)
        return await self.live.reads.query(lambda: identify(cookie))

    async def begin(self, page: LivePage) -> None:
        await self.join()
        self.browser = Browser(page, self.send, self.renew)
        self.live.opened(1)
        self.sending = asyncio.create_task(self.keep_sending(self.browser))

    async def renew(self) -> bool:
        """At every tick: the rights again, and the groups, which a layer forgets in silence."""
        await self.join()
        return await self.identify() == self.identity

    async def join(self) -> None:
        for group in self.joined():
            await self.channel_layer.group_add(group, self.channel_name)

    def joined(self) -> tuple[str, ...]:
        user_id = self.identity.user_id
        return () if user_id is None else (hints.CHATS, hints.user_group(user_id))

    async def keep_sending(self, browser: Browser) -> None:
        code = CLOSE_OVERLOAD
        try:
            await browser.run()
            # The rights changed: a fresh handshake decides anew.
            code = CLOSE_RESTART
        except BrowserLeft:
            return  # Its disconnect is on the way and clears up.
        except TooSlow:
            logger.info("A browser took no frame for too long; it is told to come back")
        except UnknownChat:
            code = CLOSE_NO_CHAT
        except AWAY:
            logger.warning("A live page found no database; its browser is told to come back")
        except Exception:
            logger.exception("A live page failed; its browser is told to come back")
        await self.channel_layer.send(self.channel_name, {"type": "browser.end", "code": code})

    # Handlers: each marks and returns, so that the layer's queue never fills.

    async def chats_changed(self, message: dict[str, Any]) -> None:
        if self.browser is None:
            return
        if message["origin"] != self.live.hints.origin:
            self.live.board.hear(message)
        self.browser.mark(None if message["all"] else message["ids"])

    async def user_changed(self, message: dict[str, Any]) -> None:
        await self.end(CLOSE_RESTART)

    async def browser_end(self, message: dict[str, Any]) -> None:
        await self.end(message["code"])

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.browser is None:
            return
        try:
            shown = SHOWN.decode((text_data or "")[: MAX_FRAME + 1]).show
        except msgspec.DecodeError:
            await self.end(CLOSE_BAD_REQUEST)
        else:
            self.browser.show(shown[:MAX_SHOWN])

    async def end(self, code: int) -> None:
        """Close, also where the browser takes nothing any more."""
        with contextlib.suppress(OSError):  # TimeoutError is one, and a browser that has left.
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await self.close(code)
        await self.disconnect(code)
        raise StopConsumer

    async def disconnect(self, code: int) -> None:
        if self.sending is not None:
            self.live.opened(-1)
            self.sending.cancel()
            await asyncio.gather(self.sending, return_exceptions=True)
            self.sending = None
        for group in self.joined():
            await self.channel_layer.group_discard(group, self.channel_name)
