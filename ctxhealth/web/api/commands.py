"""Pressing, looking at and cancelling commands, with the rights and the audit of the pages."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from django.http import HttpRequest, HttpResponse
from ninja import Path, Router

from ctxhealth.store import queries, writes
from ctxhealth.web.api import shapes
from ctxhealth.web.api.bodies import body_of
from ctxhealth.web.api.callers import caller_of, reader
from ctxhealth.web.api.chats import ChatId
from ctxhealth.web.api.errors import ApiError
from ctxhealth.web.api.openapi import answers, body
from ctxhealth.web.api.rendering import command_shape, json_response

router = Router(tags=["commands"])

CommandId = Annotated[str, Path(min_length=1, max_length=40, pattern=r"^[0-9a-zA-Z-]+$")]
STATUS_OF_REFUSAL = {
    "no_right": 403,
    "server_read_only": 403,
    "no_chat": 404,
    "no_command": 404,
    "key_used": 409,
}


@router.post(
    "/chats/{chat_id}/commands",
    openapi_extra={
        **body(shapes.CommandRequest),
        **answers(shapes.CommandDocument, 400, 409, 413, status=201, said="Queued."),
    },
    summary="Press",
)
def press(request: HttpRequest, chat_id: ChatId) -> HttpResponse:
    """Queues a command. The same idempotency key gives the same command again.

    409 while another command that changes the chat is open, with that one (``open_command``), and
    where the key was used for another chat, kind or args (``key_used``).
    """
    caller = caller_of(request)
    asked = body_of(request, shapes.CommandRequest)
    try:
        row = writes.command_request(
            chat_id=chat_id,
            kind=asked.kind,
            args=asked.args,
            reason=asked.reason,
            idempotency_key=asked.idempotency_key,
            by=caller.user,
            by_name=caller.name,
            allowed=caller.may_operate,
            ip=_ip(request),
        )
    except writes.Refused as refusal:
        raise _refused(refusal) from refusal
    except writes.OpenCommand as first:
        raise ApiError(
            409, str(first), code="open_command", more={"command": _plain(first.command)}
        ) from first
    return _answer(row, status=201)


@router.get(
    "/commands/{command_id}",
    openapi_extra=answers(shapes.CommandDocument),
    summary="How far it came",
)
def command(request: HttpRequest, command_id: CommandId) -> HttpResponse:
    reader(request)
    row = queries.command_get(command_id)
    if row is None:
        raise ApiError(404, "There is no such command.", field="command_id")
    return _answer(row)


@router.post(
    "/commands/{command_id}/cancel",
    openapi_extra=answers(shapes.CommandDocument, 409),
    summary="Cancel what has not started",
)
def cancel(request: HttpRequest, command_id: CommandId) -> HttpResponse:
    """At once where it was not sent yet; else the agent is asked, and the state tells."""
    caller = caller_of(request)
    try:
        row = writes.command_cancel(
            command_id=command_id,
            by=caller.user,
            by_name=caller.name,
            allowed=caller.may_operate,
            ip=_ip(request),
        )
    except writes.Refused as refusal:
        raise _refused(refusal, otherwise=409) from refusal
    return _answer(row)


def _refused(refusal: writes.Refused, otherwise: int = 422) -> ApiError:
    status = STATUS_OF_REFUSAL.get(refusal.reason, otherwise)
    return ApiError(status, refusal.detail, code=refusal.reason, field=refusal.field or None)


def _answer(row: queries.CommandRow, status: int = 200) -> HttpResponse:
    return json_response(shapes.CommandDocument(command=command_shape(row)), status)


def _plain(row: queries.CommandRow) -> Any:
    return msgspec.to_builtins(command_shape(row))


def _ip(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))
