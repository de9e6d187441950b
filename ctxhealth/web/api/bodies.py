"""Request bodies: strict JSON, checked against a Struct, refused with the path at fault."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, UnreadablePostError

from ctxhealth.web.api.errors import ApiError
from ctxhealth.wire.canonical import NotCanonical, canonicalise, loads

T = TypeVar("T", bound=msgspec.Struct)

MAX_BODY = 64 * 1024
_AT = re.compile(r" - at `\$\.?([^`]*)`$")


def body_of(request: HttpRequest, shape: type[T]) -> T:
    """The body as ``shape``. Raises ApiError 400 (not JSON), 413 (too big) or 422 (a value)."""
    try:
        value, _ = canonicalise(loads(_bytes(request)))
    except NotCanonical as problem:
        status = 400 if problem.code in ("not_json", "not_utf8") else 422
        code = "bad_json" if status == 400 else problem.code
        raise ApiError(status, problem.detail, code=code, field=_field(problem.path)) from None
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as problem:
        text = str(problem)
        at = _AT.search(text)
        raise ApiError(422, _AT.sub("", text), field=at.group(1) if at else "body") from None


def _bytes(request: HttpRequest) -> bytes:
    try:
        raw = request.body
    except RequestDataTooBig:
        raise ApiError(413, f"The body is longer than {MAX_BODY} bytes.", field="body") from None
    except UnreadablePostError:
        raise ApiError(400, "The body broke off.", code="bad_json", field="body") from None
    if len(raw) > MAX_BODY:
        raise ApiError(413, f"The body is longer than {MAX_BODY} bytes.", field="body")
    return raw


def _field(path: str) -> str:
    return path.removeprefix("$").removeprefix(".") or "body"
