"""Addresses under /api/."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path, re_path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from ninja.errors import HttpError, ValidationError

from ctxhealth import __version__
from ctxhealth.store.through import AWAY, StoreBusy
from ctxhealth.web.api import chats, commands, errors, incidents
from ctxhealth.web.api.callers import Bearer, Session
from ctxhealth.web.api.openapi import StructAPI
from ctxhealth.web.api.protocol import protocol_schema

api = StructAPI(
    title="ctxhealth",
    version=__version__,
    description="Context health of live agents: read it, and act on it.",
    openapi_url=None,
    docs_url=None,
    urls_namespace="api",
    auth=[Bearer(), Session()],
)
api.add_router("", chats.router)
api.add_router("", commands.router)
api.add_router("", incidents.router)
HANDLERS: dict[type[Exception], Any] = {
    errors.ApiError: errors.on_api_error,
    ValidationError: errors.on_invalid,
    HttpError: errors.on_http_error,
    StoreBusy: errors.on_busy,
    **dict.fromkeys(AWAY, errors.on_busy),
    Http404: errors.on_missing,
    Exception: errors.on_anything,
}
for kind, handler in HANDLERS.items():
    api.add_exception_handler(kind, handler)


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    return HttpResponse(_openapi_bytes(), content_type="application/json")


@cache
def _openapi_bytes() -> bytes:
    return msgspec.json.encode(dict(api.get_openapi_schema(path_prefix="api/v1/")))


@require_safe
def protocol(request: HttpRequest) -> HttpResponse:
    """The JSON Schema of everything that travels between an agent and the server."""
    return HttpResponse(_protocol_bytes(), content_type="application/schema+json")


@cache
def _protocol_bytes() -> bytes:
    return msgspec.json.encode(protocol_schema())


@csrf_exempt
def nowhere(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
    return errors.error_response(404, "There is nothing at this address.")


def _routes() -> list[URLPattern]:
    """The API's own routes, without the page that django-ninja puts at their root."""
    routes = [found for found in api.urls[0] if isinstance(found, URLPattern)]
    for route in routes:
        route.callback = errors.always_json(route.callback)
    return [route for route in routes if route.name != "api-root"]


urlpatterns: list[URLPattern | URLResolver] = [
    path("openapi.json", openapi, name="openapi"),
    path("protocol.json", protocol, name="protocol"),
    path("v1/", (_routes(), "api", "api")),
    re_path(r"^", nowhere),
]
