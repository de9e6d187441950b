"""From the store's rows to the API's shapes, and to bytes."""

from __future__ import annotations

from typing import Any

import msgspec
from django.http import HttpResponse

from ctxhealth.store import queries
from ctxhealth.store.queries import BoardRow, ChatRow, CommandRow, EventRow
from ctxhealth.web.api import shapes


def json_response(answer: msgspec.Struct, status: int = 200) -> HttpResponse:
    response = HttpResponse(
        msgspec.json.encode(answer), status=status, content_type="application/json"
    )
    response["Cache-Control"] = "no-store"
    return response


def row_shape(row: BoardRow | ChatRow) -> shapes.ChatRow:
    return shapes.ChatRow(
        id=row.id,
        chat=row.external_id,
        agent=row.agent,
        version=row.version,
        **shallow(row.summary),
    )


def in_full(chat: ChatRow) -> msgspec.Struct | None:
    """Everything its page shows; None where the chat went away meanwhile."""
    detail = queries.chat_detail(chat.id)
    if detail is None:
        return None
    row = shapes.ChatRow(
        id=chat.id,
        chat=chat.external_id,
        agent=chat.agent,
        version=chat.version,
        **shallow(detail.summary),
    )
    more: dict[str, Any] = {
        "chat_seq": detail.chat_seq,
        "headline": detail.headline,
        "latches": queries.chat_latches(chat.id),
        "findings": queries.chat_findings(chat.id),
        "attempts": queries.chat_attempts(chat.id),
        "structure": detail.structure,
        "heavy": list(detail.heavy),
        "commands": [command_shape(command) for command in queries.chat_commands(chat.id)],
        "children": [row_shape(child) for child in queries.chat_children(chat.id)],
    }
    return shapes.ChatInFull(**{**shallow(row), **more})


def command_shape(row: CommandRow) -> shapes.CommandShape:
    names = shapes.CommandShape.__struct_fields__
    return shapes.CommandShape(**{name: getattr(row, name) for name in names})


def event_shape(row: EventRow) -> shapes.EventShape:
    rejected = shapes.RejectShape(code=row.code, path=row.path, detail=row.detail)
    return shapes.EventShape(
        chat_seq=row.chat_seq or 0,
        type=row.type,
        ts=row.ts,
        received=row.received,
        at=row.at,
        seq=row.seq,
        by_server=row.by_server,
        rejected=rejected if row.tombstone else None,
        body=msgspec.Raw(row.body.encode()),
    )


def shallow(struct: msgspec.Struct) -> dict[str, Any]:
    """Field values as they are, one level deep."""
    return {name: getattr(struct, name) for name in struct.__struct_fields__}
