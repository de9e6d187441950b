"""Where a request came from, for the audit trail and the login's brakes."""

from __future__ import annotations

from django.http import HttpRequest


def address_of(request: HttpRequest) -> str:
    """The peer's address; behind a proxy the server itself has put the client's there."""
    return str(request.META.get("REMOTE_ADDR") or "")


def request_id_of(request: HttpRequest) -> str:
    return str(request.headers.get("X-Request-ID", ""))[:60]
