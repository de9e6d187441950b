"""The OpenAPI document: routes by django-ninja, shapes by the Structs that are encoded."""

from __future__ import annotations

from typing import Any

import msgspec
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from ctxhealth.web.api import incident_shapes, shapes
from ctxhealth.web.api.errors import ErrorDocument

REF = "#/components/schemas/{name}"
SHAPES: tuple[Any, ...] = (
    shapes.ChatPage,
    shapes.ChatInFull,
    shapes.EventPage,
    shapes.ReadingList,
    shapes.StateAt,
    shapes.CommandRequest,
    shapes.CommandDocument,
    incident_shapes.IncidentList,
    incident_shapes.IncidentDocument,
    ErrorDocument,
)
ERRORS = {
    401: "No valid token and no session.",
    403: "The token's scope or the person's role does not allow this.",
    404: "There is no such thing.",
    422: "A value is not acceptable; `field` names it.",
}


def answers(shape: type, *more: int, status: int = 200, said: str = "") -> dict[str, Any]:
    """What an operation answers, for ``openapi_extra``; ``more`` are further error statuses."""
    texts = {
        **ERRORS,
        400: "The body is not JSON.",
        409: "The state of things is against it.",
        413: "Too big.",
    }
    responses: dict[int, Any] = {
        code: _content(ErrorDocument, texts[code]) for code in (401, 403, 404, 422, *more)
    }
    responses[status] = _content(shape, said or "OK")
    return {"responses": responses}


def body(shape: type) -> dict[str, Any]:
    return {"requestBody": {"required": True, **_content(shape, "")}}


def _content(shape: type, description: str) -> dict[str, Any]:
    schema = {"$ref": REF.format(name=shape.__name__)}
    content = {"content": {"application/json": {"schema": schema}}}
    return {"description": description, **content} if description else content


class StructAPI(NinjaAPI):
    """A NinjaAPI whose components are the Structs' JSON Schema."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        _, components = msgspec.json.schema_components(SHAPES, ref_template=REF)
        document["components"]["schemas"].update(components)
        return document
