"""Headers that every answer carries: nothing inline runs, nothing is framed, nothing is kept."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

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
