"""The one composition of http, websockets and lifespan.

Agents and browsers share nothing but the port: an agent's socket carries a bearer token and is
refused with an Origin or a Cookie; a browser's must come from this very origin with a session.
"""

from __future__ import annotations

import os
from typing import Any

from channels.routing import ProtocolTypeRouter
from channels.sessions import CookieMiddleware
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxhealth.settings")
http = get_asgi_application()

# Models are importable only once Django is set up, which the line above does.
from ctxhealth import runtime  # noqa: E402
from ctxhealth.ingest.consumer import AgentConsumer  # noqa: E402
from ctxhealth.ingest.gate import Gate  # noqa: E402
from ctxhealth.live.admission import Application, ExactOrigin, deny  # noqa: E402
from ctxhealth.live.consumer import UiConsumer  # noqa: E402
from ctxhealth.live.service import Live  # noqa: E402
from ctxhealth.web.body_limit import BodyLimit  # noqa: E402


def gate() -> Gate:
    return runtime.get().gate


def live() -> Live:
    return runtime.get().live


SOCKETS: dict[str, Application] = {
    "/ws/agent/v1/": AgentConsumer.as_asgi(gate=gate),
    "/ws/ui/v1/": ExactOrigin(CookieMiddleware(UiConsumer.as_asgi(live=live))),
}


async def websocket(scope: Any, receive: Any, send: Any) -> None:
    """Route by exact path; an unknown one is a 403 and not a trace in the log."""
    app = SOCKETS.get(scope["path"])
    if app is None:
        await deny(receive, send)
        return
    await app(scope, receive, send)


application = ProtocolTypeRouter(
    {"http": BodyLimit(http), "websocket": websocket, "lifespan": runtime.lifespan}
)
