"""Reading chats: the list, one in full, its log, its series, and any moment of it."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router

from ctxhealth.core.model import State
from ctxhealth.store import queries
from ctxhealth.store.queries import BoardFilters, ChatRow
from ctxhealth.store.queries.board_order import BadCursor
from ctxhealth.web.api import shapes
from ctxhealth.web.api.callers import reader
from ctxhealth.web.api.errors import ApiError
from ctxhealth.web.api.openapi import answers
from ctxhealth.web.api.rendering import event_shape, in_full, json_response, row_shape

router = Router(tags=["chats"])

MAX_ID = 2**63 - 1
STATES = tuple(state.value for state in State)
ChatId = Annotated[int, Path(ge=1, le=MAX_ID, description="The chat's number here.")]
ChatSeq = Annotated[int, Path(ge=0, le=MAX_ID, description="A place in the chat's log.")]
Word = Annotated[str, Query(max_length=200)]
States = Annotated[str, Query(max_length=400, description="States with commas between.")]
Cursor = Annotated[str, Query(max_length=400, description="`next` of the page before.")]


@router.get("/chats", openapi_extra=answers(shapes.ChatPage), summary="Chats, worst first")
def chats(
    request: HttpRequest,
    state: States = "",
    agent: Word = "",
    model: Word = "",
    outcome: Word = "",
    q: Word = "",
    cursor: Cursor = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> HttpResponse:
    """By severity, then the longest waiting user, then headroom to the trigger."""
    reader(request)
    filters = BoardFilters(
        states=_states(state),
        agent=plain_text(agent),
        model=plain_text(model),
        outcome=plain_text(outcome),
        q=plain_text(q),
    )
    try:
        page = queries.board_page(filters, cursor or None, limit)
    except BadCursor as error:
        raise ApiError(422, "Not a cursor that this server gave.", field="cursor") from error
    return json_response(
        shapes.ChatPage(
            chats=[row_shape(row) for row in page.rows],
            next=page.next,
            total=page.total,
            counts_by_state=page.counts_by_state,
        )
    )


@router.get(
    "/chats/{chat_id}", openapi_extra=answers(shapes.ChatInFull), summary="One chat in full"
)
def chat(request: HttpRequest, chat_id: ChatId) -> HttpResponse:
    reader(request)
    answer = in_full(found(chat_id))
    if answer is None:
        raise no_chat(chat_id)
    return json_response(answer)


@router.get("/chats/{chat_id}/events", openapi_extra=answers(shapes.EventPage), summary="Its log")
def events(
    request: HttpRequest,
    chat_id: ChatId,
    after: Annotated[int, Query(ge=0, le=MAX_ID)] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    type: Annotated[str, Query(max_length=1_000, description="Types with commas between.")] = "",
) -> HttpResponse:
    """In the order of the log, from behind ``after``; tombstones and gaps stand in place."""
    reader(request)
    found(chat_id)
    kinds = [plain_text(kind) for kind in type.split(",") if kind]
    rows = queries.chat_events(chat_id, after=after, limit=limit, types=kinds)
    return json_response(
        shapes.EventPage(
            events=[event_shape(row) for row in rows],
            next=rows[-1].chat_seq if len(rows) == limit else None,
        )
    )


@router.get(
    "/chats/{chat_id}/readings", openapi_extra=answers(shapes.ReadingList), summary="Its load"
)
def readings(
    request: HttpRequest,
    chat_id: ChatId,
    points: Annotated[int, Query(ge=3, le=5_000)] = 600,
) -> HttpResponse:
    reader(request)
    found(chat_id)
    return json_response(shapes.ReadingList(readings=queries.chat_readings(chat_id, points)))


@router.get(
    "/chats/{chat_id}/at/{chat_seq}", openapi_extra=answers(shapes.StateAt), summary="Any moment"
)
def at(request: HttpRequest, chat_id: ChatId, chat_seq: ChatSeq) -> HttpResponse:
    """The fold of the log up to and including that event."""
    reader(request)
    head = found(chat_id).chat_seq
    if chat_seq > head:
        raise ApiError(404, f"The log ends at {head}.", field="chat_seq")
    detail = queries.chat_detail(chat_id, chat_seq)
    if detail is None:
        raise no_chat(chat_id)
    return json_response(shapes.StateAt(id=chat_id, chat_seq=chat_seq, detail=detail))


def found(chat_id: int) -> ChatRow:
    row = queries.chat_get(chat_id)
    if row is None:
        raise no_chat(chat_id)
    return row


def no_chat(chat_id: int) -> ApiError:
    return ApiError(404, f"There is no chat {chat_id}.", field="chat_id")


def _states(text: str) -> tuple[str, ...]:
    given = tuple(word for word in text.split(",") if word)
    for word in given:
        if word not in STATES:
            names = ", ".join(STATES)
            raise ApiError(422, f"Not a state: {word[:40]!r}. States are {names}.", field="state")
    return given


def plain_text(value: str) -> str:
    """NUL is no text on PostgreSQL, and matches nothing anywhere."""
    if "\x00" in value:
        raise ApiError(422, "A value contains NUL.", field="query")
    return value
