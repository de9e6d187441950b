"""No request's body is larger than its address needs: told before it fills a disk.

Django puts a body on disk before any view, and any sign-in, is asked; so a large one is taken only
with a session that this server signed, which is told without the database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.signed_cookies import SessionStore
from django.http import parse_cookie

from ctxhealth.wire import limits

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]
# Room for the frame around a batch of events, or a form.
ROOM = 1_000_000
IMPORT = "/import/"
# One drop may hold two of the largest files.
DROP_TIMES = 2


def most_of(path: str, *, signed_in: bool = True) -> int:
    """Bytes that a request to ``path`` may carry."""
    if path == IMPORT and signed_in:
        return int(DROP_TIMES * settings.CTXHEALTH_IMPORT_MB * 1_000_000 + ROOM)
    return limits.INFLIGHT_BYTES + ROOM


class BodyLimit:
    """413 for a body that says it is, or turns out to be, too large."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        signed_in = scope["path"] == IMPORT and _signed_in(headers.get(b"cookie", b""))
        most = most_of(scope["path"], signed_in=signed_in)
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:18]) > most:
            await _refuse(send, most)
            return
        counted = _Counted(receive, send, most)
        await self._app(scope, counted.receive, counted.send)
        if counted.over and not counted.answered:
            await _refuse(send, most)


def _signed_in(cookies: bytes) -> bool:
    """Whether the session's cookie bears our signature, is not too old, and names somebody."""
    name = settings.SESSION_COOKIE_NAME
    session = parse_cookie(cookies.decode("latin-1")).get(name)
    return session is not None and SessionStore(session).get(SESSION_KEY) is not None


class _Counted:
    """A body without a stated length is counted; one too large ends as if the client had left."""

    def __init__(self, receive: Receive, send: Send, most: int) -> None:
        self._receive, self._send = receive, send
        self._left = most
        self.over = self.answered = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            self.over = True
            return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        self.answered = True
        await self._send(message)


async def _refuse(send: Send, most: int) -> None:
    text = f"At most {most // 1_000_000:,} MB can be sent here at once.\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text})
