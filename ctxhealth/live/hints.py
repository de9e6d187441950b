"""Hints over the channel layer: which chats changed, and whose permissions may have.

A hint carries ids and versions, never data, and may be lost: layers drop silently. Every process
sends one hint per interval for all its commits together; every browser's consumer takes from it
what its page shows.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer

logger = logging.getLogger(__name__)

CHATS = "live.chats"
INTERVAL_SECONDS = 0.25
SEND_TIMEOUT_SECONDS = 5
MAX_IDS = 2_000


def user_group(user_id: int) -> str:
    return f"live.user.{user_id}"


async def user_changed(user_id: int) -> None:
    """Cut this person's sockets: they come back with the cookies they hold now, or not at all.

    To be called after logout, a new password, a change of role or a disabled account.
    """
    layer = get_channel_layer()
    if layer is not None:
        await layer.group_send(user_group(user_id), {"type": "user.changed"})


def cut(user_id: int) -> None:
    """``user_changed`` for synchronous callers. A layer that is down leaves it to the tick."""
    try:
        async_to_sync(user_changed)(user_id)
    except Exception:
        logger.warning("Sockets of a changed account end at their next tick", exc_info=True)


class Hints:
    """Collects changed chats and sends at most one hint per interval, the first one at once.

    Lives on one event loop; ``mark`` must be called there. ``origin`` names this process, whose
    board knows already what its own hints say.
    """

    def __init__(self, interval: float = INTERVAL_SECONDS) -> None:
        self.origin = secrets.token_hex(8)
        self.interval = interval
        self.sent = 0
        self.failed = 0
        self._pending: dict[int, int] = {}
        self._task: asyncio.Task[None] | None = None

    def mark(self, versions: Mapping[int, int]) -> None:
        self._pending.update(versions)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send_while_pending())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_while_pending(self) -> None:
        while self._pending:
            pending, self._pending = self._pending, {}
            await self._send(pending)
            await asyncio.sleep(self.interval)

    async def _send(self, versions: dict[int, int]) -> None:
        layer = get_channel_layer()
        if layer is None:
            return
        message = chats_message(versions, self.origin, self.sent)
        try:
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                await layer.group_send(CHATS, message)
            self.sent += 1
        except Exception:
            # A layer that is down costs seconds of freshness, never the writer or the pages.
            self.failed += 1
            logger.warning("A hint was not sent; pages follow at their next tick", exc_info=True)


def chats_message(versions: Mapping[int, int], origin: str, serial: int) -> dict[str, Any]:
    """Two flat lists: cheap to copy per member, and free of integer keys, which msgpack refuses.

    More chats than ``MAX_IDS`` are said as "all": every page then looks for itself.
    """
    every = len(versions) > MAX_IDS
    return {
        "type": "chats.changed",
        "origin": origin,
        "serial": serial,
        "all": every,
        "ids": [] if every else list(versions),
        "versions": [] if every else list(versions.values()),
    }
