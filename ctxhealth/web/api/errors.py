"""One shape for every error of the API: ``{"error": {"code", "field", "detail"}}``, no trace."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

import msgspec
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from ninja.errors import HttpError, ValidationError

logger = logging.getLogger(__name__)

CODE_OF_STATUS = {
    400: "bad_request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_big",
    422: "invalid",
    429: "too_many",
    500: "internal",
    503: "unavailable",
}


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """``field`` is the path of the value at fault, None where no single value is."""

    code: str
    field: str | None = None
    detail: str


class ErrorDocument(msgspec.Struct, frozen=True, kw_only=True):
    error: ErrorBody


class ApiError(Exception):
    """An answer other than success, raised anywhere below a route."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: str | None = None,
        field: str | None = None,
        more: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.body = ErrorBody(
            code=code or CODE_OF_STATUS.get(status, "error"), field=field, detail=detail
        )
        self.more = more or {}


def error_response(
    status: int,
    detail: str,
    *,
    code: str | None = None,
    field: str | None = None,
    more: dict[str, Any] | None = None,
) -> HttpResponse:
    body = ErrorBody(code=code or CODE_OF_STATUS.get(status, "error"), field=field, detail=detail)
    response = JsonResponse({"error": msgspec.to_builtins(body), **(more or {})}, status=status)
    if status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


def on_api_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    body = error.body
    return error_response(
        error.status, body.detail, code=body.code, field=body.field, more=error.more
    )


def on_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """The first fault alone: its path without the source it was read from, and the reason."""
    first = error.errors[0]
    where, *path = [str(part) for part in first["loc"]]
    return error_response(422, first["msg"], field=".".join(path) or where)


def on_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    detail = str(error)
    if error.status_code == 400:
        return error_response(400, "The body is not valid JSON.", code="bad_json", field="body")
    if error.status_code == 401:
        detail = "Send a bearer token with the scope that this needs, or sign in."
    return error_response(error.status_code, detail)


def on_missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return error_response(404, str(error) or "There is nothing at this address.")


def on_busy(request: HttpRequest, error: Exception) -> HttpResponse:
    """``StoreBusy``, or the database itself that does not answer."""
    return unavailable()


def unavailable() -> HttpResponse:
    response = error_response(503, "The database does not answer; nothing was written.")
    response["Retry-After"] = "2"
    return response


def on_anything(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("An API request failed: %s %s", request.method, request.path, exc_info=error)
    return error_response(500, "The server failed to answer this; its log says why.")


def always_json(
    view: Callable[..., HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """Give a refusal that was made outside the API's own handlers (405) the one shape."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        if response.status_code != 405:
            return response
        refused = error_response(405, f"{request.method} is not allowed here.")
        refused["Allow"] = response.headers["Allow"]
        return refused

    return wrapped
