"""The browsers' websocket: a stock Channels consumer whose handlers only mark."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from importlib import import_module
from typing import Any

import msgspec
from channels.auth import get_user
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from ctxhealth.live import hints
from ctxhealth.live.browser import Browser, LivePage, TooSlow
from ctxhealth.live.pages import UnknownChat, open_page
from ctxhealth.live.subscription import BadSubscription, parse_subscription
from ctxhealth.store import people

logger = logging.getLogger(__name__)

# 1012 and 1013 mean "come back"; the 4000s mean "do not, as you are".
CLOSE_RESTART = 1012
CLOSE_OVERLOAD = 1013
CLOSE_BAD_REQUEST = 4400
CLOSE_SIGN_IN = 4401
CLOSE_NO_ROLE = 4403
CLOSE_NO_CHAT = 4404
CLOSE_TIMEOUT_SECONDS = 2
MAX_FRAME = 16_384
MAX_SHOWN = 1_000


class Shown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one frame a browser sends: ids of the chats whose rows stand on its page."""

    show: list[int]


SHOWN: msgspec.json.Decoder[Shown] = msgspec.json.Decoder(Shown)


class UiConsumer(AsyncWebsocketConsumer):
    """Accepts people with a role, joins the groups, and leaves the sending to a Browser."""

    browser: Browser | None = None
    sending: asyncio.Task[None] | None = None
    user_id: int | None = None

    async def connect(self) -> None:
        await self.accept()
        role = await self.present_role()
        if role is None:
            await self.close(CLOSE_SIGN_IN, "sign in")
            return
        try:
            page = await open_page(parse_subscription(self.scope["query_string"]), role)
        except BadSubscription as error:
            await self.close(CLOSE_BAD_REQUEST, str(error)[:120])
        except UnknownChat:
            await self.close(CLOSE_NO_CHAT, "no such chat")
        else:
            await self.begin(page, role)

    async def begin(self, page: LivePage, role: str) -> None:
        async def renew() -> bool:
            await self.join()
            return await self.present_role() == role

        await self.join()
        self.browser = Browser(page, self.send, renew)
        self.sending = asyncio.create_task(self.keep_sending(self.browser))

    async def join(self) -> None:
        """Also at every tick: a layer forgets members whose message expired, and says nothing."""
        await self.channel_layer.group_add(hints.CHATS, self.channel_name)
        await self.channel_layer.group_add(hints.user_group(self.user_id or 0), self.channel_name)

    async def present_role(self) -> str | None:
        """The role by the database of now: disabled, signed out and expired people have none."""
        engine = import_module(settings.SESSION_ENGINE)
        session = engine.SessionStore(self.scope["session"].session_key)
        user = await get_user({"session": session})
        self.user_id = user.pk
        return await people.arole_of(user) if user.is_authenticated else None

    async def keep_sending(self, browser: Browser) -> None:
        code = CLOSE_RESTART
        try:
            await browser.run()
            # The role changed: a fresh handshake decides anew.
        except TooSlow:
            code = CLOSE_OVERLOAD
        except UnknownChat:
            code = CLOSE_NO_CHAT
        except Exception:
            code = CLOSE_OVERLOAD
            logger.exception("A live page failed; its browser is told to come back")
        await self.channel_layer.send(self.channel_name, {"type": "browser.end", "code": code})

    # Handlers: each marks and returns, so that the layer's queue never fills.

    async def chats_changed(self, message: dict[str, Any]) -> None:
        if self.browser is not None:
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
            return
        self.browser.show(shown[:MAX_SHOWN])

    async def end(self, code: int) -> None:
        """Close, also where the browser takes nothing any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await self.close(code)
        await self.disconnect(code)
        raise StopConsumer

    async def disconnect(self, code: int) -> None:
        if self.sending is not None:
            self.sending.cancel()
            await asyncio.gather(self.sending, return_exceptions=True)
        for group in (hints.CHATS, hints.user_group(self.user_id or 0)):
            await self.channel_layer.group_discard(group, self.channel_name)
