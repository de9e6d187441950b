"""Who may open the browsers' socket: pages of this very origin, and nobody else."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

logger = logging.getLogger(__name__)

DEFAULT_PORTS = {"http": 80, "https": 443}
SCHEME_OF_SOCKET = {"ws": "http", "wss": "https"}

Origin = tuple[str, str, int]
# (scope, receive, send); the stubs' unions of every ASGI message fit no two libraries.
Application = Callable[[Any, Any, Any], Awaitable[None]]


def parse_origin(text: str) -> Origin | None:
    """(scheme, host, port) of an Origin header, or None where it is not exactly an origin."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or _has_more(parts):
        return None
    return parts.scheme, parts.hostname, DEFAULT_PORTS[parts.scheme] if port is None else port


def _has_more(parts: SplitResult) -> bool:
    return bool(parts.path or parts.query or parts.fragment or "@" in parts.netloc)


class ExactOrigin:
    """Refuses every handshake whose Origin is not that of the server's own pages (403).

    Accepted are the origins in ``CTXHEALTH_ORIGINS`` and the socket's own scheme, host and
    port where the host is one of ``ALLOWED_HOSTS``. A missing Origin is refused: browsers always
    send one. Wildcards in the settings are not origins and match nothing.
    """

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        reason = refusal(scope)
        if reason is None:
            await self.app(scope, receive, send)
            return
        logger.warning("Refused a browser socket: %s", reason)
        await deny(receive, send)


async def deny(receive: Any, send: Any) -> None:
    """Close before accepting, which the server turns into a bare 403."""
    await receive()
    await send({"type": "websocket.close", "code": 4403, "reason": ""})


def refusal(scope: Any) -> str | None:
    """Why this handshake is refused, or None. Header values are shown escaped and cut."""
    given = [value for name, value in scope["headers"] if name == b"origin"]
    if len(given) != 1:
        return f"{len(given)} Origin headers"
    text = given[0].decode("latin-1")
    origin = parse_origin(text)
    if origin is None:
        return f"malformed Origin {text[:200]!r}"
    if origin in _trusted(settings.CTXHEALTH_ORIGINS) or origin == _own_origin(scope):
        return None
    return f"foreign Origin {text[:200]!r}"


def _trusted(origins: Iterable[str]) -> set[Origin]:
    return {origin for text in origins if "*" not in text and (origin := parse_origin(text))}


def _own_origin(scope: Any) -> Origin | None:
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    text = host.decode("latin-1")
    domain, _port = split_domain_port(text)
    allowed = [pattern for pattern in settings.ALLOWED_HOSTS if pattern != "*"]
    if not domain or not validate_host(domain, allowed):
        return None
    return parse_origin(f"{SCHEME_OF_SOCKET.get(scope.get('scheme', 'ws'), 'http')}://{text}")
