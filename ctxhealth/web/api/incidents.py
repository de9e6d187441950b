"""Reading incidents: the list, and one in full."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router

from ctxhealth.store import queries
from ctxhealth.store.queries import IncidentDetail
from ctxhealth.web.api import incident_shapes as shapes
from ctxhealth.web.api.callers import reader
from ctxhealth.web.api.chats import MAX_ID, plain_text
from ctxhealth.web.api.errors import ApiError
from ctxhealth.web.api.openapi import answers
from ctxhealth.web.api.rendering import command_shape, json_response
from ctxhealth.web.api.shapes import Shape

router = Router(tags=["incidents"])

IncidentId = Annotated[int, Path(ge=1, le=MAX_ID, description="The incident's number.")]
Word = Annotated[str, Query(max_length=200)]
Which = Annotated[Literal["open", "closed", "all", "reviews"], Query(description="Which of them.")]
S = TypeVar("S", bound=Shape)


@router.get(
    "/incidents", openapi_extra=answers(shapes.IncidentList), summary="Incidents, open ones first"
)
def incidents(
    request: HttpRequest,
    state: Which = "open",
    agent: Word = "",
    root: Word = "",
    q: Word = "",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> HttpResponse:
    """Open ones first, then the newest; a page beyond the last is the last."""
    reader(request)
    found = queries.incident_list(
        state=state,
        agent=plain_text(agent),
        root=plain_text(root),
        text=plain_text(q),
        page=page,
        per_page=limit,
    )
    return json_response(
        shapes.IncidentList(
            incidents=[_shaped(shapes.IncidentShape, row) for row in found.rows],
            page=found.page,
            pages=found.pages,
            total=found.total,
            counts=found.counts,
        )
    )


@router.get(
    "/incidents/{incident_id}",
    openapi_extra=answers(shapes.IncidentDocument),
    summary="One incident in full",
)
def incident(request: HttpRequest, incident_id: IncidentId) -> HttpResponse:
    """With its cause chain, figures, commands, notes and verdict."""
    reader(request)
    found = queries.incident_detail(incident_id)
    if found is None:
        raise ApiError(404, f"There is no incident {incident_id}.", field="incident_id")
    return json_response(_document(found))


def _document(found: IncidentDetail) -> shapes.IncidentDocument:
    return shapes.IncidentDocument(
        incident=_shaped(shapes.IncidentShape, found.row),
        view=found.view,
        judged=found.judged,
        from_seq=found.from_seq,
        to_seq=found.to_seq,
        group=None if found.group is None else _group(found.group),
        notes=[_shaped(shapes.NoteShape, note) for note in found.notes],
        verdict=shapes.VerdictShape(
            verdict=found.verdict,
            text=found.verdict_text,
            by=found.verdict_by,
            at=found.verdict_at,
        ),
        commands=[command_shape(row) for row in queries.incident_commands(found.row.id)],
    )


def _group(group: queries.GroupRow) -> shapes.CauseGroupShape:
    return _shaped(shapes.CauseGroupShape, group, chats=list(group.chats))


def _shaped(shape: type[S], row: Any, **other: Any) -> S:
    """The row's fields that the shape has."""
    names = [name for name in shape.__struct_fields__ if name not in other]
    return shape(**{name: getattr(row, name) for name in names}, **other)
