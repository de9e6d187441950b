"""Headers that every answer carries: nothing inline runs, nothing is framed, nothing is kept."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string

from ctxhealth.store.through import AWAY, StoreBusy

_LOG = logging.getLogger(__name__)
PERMISSIONS = (
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), "
    "microphone=(), midi=(), payment=(), usb=(), browsing-topics=()"
)


def security_headers(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", content_policy(request))
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        if not request.path.startswith(settings.STATIC_URL):
            # A page kept by a cache would show one person's session to the next.
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def not_allowed_page(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """The address of a form, opened as a page after a refusal or a login: said, not left blank."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        empty = response.status_code == 405 and not getattr(response, "content", b"")
        if not empty or request.method != "GET" or request.path.startswith("/api/"):
            return response
        from ctxhealth.web.access import refuse

        why = "A form is sent to this address; there is nothing to look at. Nothing was done now."
        page = refuse(request, why, status=405)
        page["Allow"] = response["Allow"]
        return page

    return middleware


class DatabaseAway:
    """A view that could not reach the database: 503 and when to come back, instead of a 500.

    Pages get one that stands alone, everything else the error document of the API.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, (*AWAY, StoreBusy)):
            return None
        from ctxhealth.web.api.errors import unavailable

        _LOG.warning("the database does not answer: %s %s", request.method, request.path)
        if request.path.startswith("/api/") or request.path == "/metrics":
            return unavailable()
        response = HttpResponse(render_to_string("503.html"), status=503)
        response["Retry-After"] = "2"
        return response


def content_policy(request: HttpRequest) -> str:
    """No inline script or style, no eval, no foreign origin, no frame."""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "font-src 'self'",
            f"connect-src 'self' {_own_sockets(request)}".rstrip(),
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        )
    )


def _own_sockets(request: HttpRequest) -> str:
    """The exact websocket origin: older Safari does not count it under 'self'."""
    try:
        host = request.get_host()
    except DisallowedHost:
        return ""
    return f"{'wss' if request.is_secure() else 'ws'}://{host}"


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Shown to the operator, so that nobody believes a button worked."""
    from ctxhealth.web.access import refuse

    why = "This page is too old to act from: reload it and press again."
    return refuse(request, why, heading="Nothing was done")
