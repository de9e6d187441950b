"""Reasonix's own HTTP server, as a second client: a token cookie, JSON, one event stream.

It answers paths that it does not know with 200 and its web page, so what an answer is goes by its
content type, never by its status.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

_GET_S = 10.0
# Pings come every 15 s: after three without one the stream is gone although it looks open.
_SILENT_S = 45.0
# One forced compaction may try its provider four times, each with a summary to write.
_COMPACT_S = 900.0
_MOST_BYTES = 32 * 1024 * 1024
_SESSION = "X-Reasonix-Expected-Session-ID"


class Unreachable(Exception):
    """Reasonix does not answer, or broke off; ``str`` says why."""


class NotAllowed(Exception):
    """Reasonix does not take the token (or wants one)."""


class NotThere(Exception):
    """This version of Reasonix has no such endpoint."""


class Host:
    """``token`` is asked anew for each request, since a restart may have written another."""

    def __init__(self, url: str, token: Callable[[], str | None]) -> None:
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not http(s)://host:port")
        _ = parts.port  # raises where it is none
        self.url = url.rstrip("/")
        self._parts = parts
        self._token = token

    def get(self, path: str) -> Any:
        """The JSON at ``path``. Raises Unreachable, NotAllowed, NotThere."""
        with closing(self._dial(_GET_S)) as connection:
            answer, raw = self._ask(connection, "GET", path)
        if answer.status != 200 or not _is_json(answer):
            raise NotThere(path)
        try:
            return json.loads(raw)
        except (RecursionError, ValueError) as error:
            raise NotThere(path) from error

    def post(self, path: str, session: str, timeout: float = _GET_S) -> tuple[int, str]:
        """Status and text. Refused with 409 where ``session`` is not the one that is open."""
        with closing(self._dial(timeout)) as connection:
            headers = {"Content-Type": "application/json", _SESSION: session}
            answer, raw = self._ask(connection, "POST", path, "{}", headers)
        if _is_page(answer):
            raise NotThere(path)
        return answer.status, raw.decode("utf-8", "replace").strip()

    def compact(self, session: str) -> tuple[int, str]:
        """Force a compaction; answers when it is over."""
        return self.post("/compact", session, _COMPACT_S)

    def events(self, opened: Callable[[], None]) -> Iterator[dict[str, Any]]:
        """The frames of the stream until it ends; ``opened`` is called once it is connected."""
        with closing(self._dial(_SILENT_S)) as connection:
            try:
                connection.request("GET", "/events", headers=self._headers())
                answer = connection.getresponse()
                _check(answer)
                if "event-stream" not in (answer.getheader("Content-Type") or ""):
                    raise NotThere("/events")
                opened()
                yield from frames(answer)
            except (OSError, http.client.HTTPException) as error:
                raise Unreachable(_said(error)) from error

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            connection.request(method, path, body, {**self._headers(), **(headers or {})})
            answer = connection.getresponse()
            raw = answer.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(_said(error)) from error
        _check(answer)
        return answer, raw

    def _dial(self, timeout: float) -> http.client.HTTPConnection:
        name, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(name, port, timeout=timeout)
        return http.client.HTTPConnection(name, port, timeout=timeout)

    def _headers(self) -> dict[str, str]:
        token = self._token()
        return {"Cookie": f"reasonix_token={token}"} if token else {}


def frames(lines: Iterator[bytes] | http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The JSON objects of an event stream; a line that is none comes as ``{}``."""
    for line in lines:
        if not line.startswith(b"data:"):
            continue
        try:
            frame = json.loads(line[5:])
        except (RecursionError, ValueError):
            frame = None
        yield frame if isinstance(frame, dict) else {}


def _check(answer: http.client.HTTPResponse) -> None:
    if answer.status in (401, 403):
        raise NotAllowed(str(answer.status))


def _is_json(answer: http.client.HTTPResponse) -> bool:
    return "json" in (answer.getheader("Content-Type") or "")


def _is_page(answer: http.client.HTTPResponse) -> bool:
    return answer.status in (404, 405) or "html" in (answer.getheader("Content-Type") or "")


def _said(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, http.client.IncompleteRead):
        return "it broke off"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
