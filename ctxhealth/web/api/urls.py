"""Addresses under /api/."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, re_path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from ninja.errors import HttpError, ValidationError

from ctxhealth import __version__
from ctxhealth.store.writer import StoreBusy
from ctxhealth.web.api import chats, commands, errors
from ctxhealth.web.api.callers import Bearer, Session
from ctxhealth.web.api.openapi import StructAPI

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
api.add_exception_handler(errors.ApiError, errors.on_api_error)
api.add_exception_handler(ValidationError, errors.on_invalid)
api.add_exception_handler(HttpError, errors.on_http_error)
api.add_exception_handler(StoreBusy, errors.on_busy)
api.add_exception_handler(Http404, errors.on_missing)
api.add_exception_handler(Exception, errors.on_anything)


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    return HttpResponse(_openapi_bytes(), content_type="application/json")


@cache
def _openapi_bytes() -> bytes:
    return msgspec.json.encode(dict(api.get_openapi_schema(path_prefix="api/v1/")))


@csrf_exempt
def nowhere(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
    return errors.error_response(404, "There is nothing at this address.")


def _always_json(pattern: URLPattern) -> URLPattern:
    pattern.callback = errors.always_json(pattern.callback)
    return pattern


urlpatterns = [
    path("openapi.json", openapi, name="openapi"),
    path("v1/", ([_always_json(p) for p in api.urls[0] if p.name != "api-root"], "api", "api")),
    re_path(r"^", nowhere),
]
