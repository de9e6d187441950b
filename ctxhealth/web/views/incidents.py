"""Incidents: the list, one of them, and any moment of it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from ctxhealth.store import queries
from ctxhealth.store.clock import now_ms
from ctxhealth.store.queries.ranges import Range
from ctxhealth.web.access import PageRequest, may_operate, member, refuse
from ctxhealth.web.incidents_list import line_of, link, query_of, selects_of, tabs_of, which_of
from ctxhealth.web.incidents_load import Incident, incident_of, stretch_of
from ctxhealth.web.incidents_range import BadRange, asked_event
from ctxhealth.web.views.reviews import moment_answer, review_context, table_answer

CHAIN = "chain"


@require_safe
@member
def incident_list(request: PageRequest) -> HttpResponse:
    """Open ones first; what the page polls is the table alone."""
    query, now = query_of(request.GET), now_ms()
    number = request.GET.get("page", "1")
    page = queries.incident_list(
        state=which_of(query),
        text=query.get("q", ""),
        agent=query.get("agent", ""),
        root=query.get("root", ""),
        page=int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 1,
    )
    context = {
        "nav": "incidents",
        "now": now,
        "operate": may_operate(request),
        "query": query,
        "which": which_of(query),
        "tabs": tabs_of(query, page.counts),
        "page": page,
        "lines": [line_of(row, now) for row in page.rows],
        "filtered": bool(query.keys() - {"show"}),
        "unfiltered": link({"show": query.get("show", "")}),
        "older": link(query, page=str(page.page + 1)) if page.page < page.pages else "",
        "newer": link(query, page=str(page.page - 1)) if page.page > 1 else "",
        "poll": f"?{link(query, page=str(page.page))}",
    }
    if request.htmx:
        return render(request, "incidents/inc/list.html", context)
    context["selects"] = selects_of(query, queries.incident_choices())
    return render(request, "incidents/list.html", context)


@require_safe
@member
def incident(request: PageRequest, incident_id: int) -> HttpResponse:
    found = incident_or_404(incident_id)
    within = _shown(request, found)
    try:
        at = asked_event(request.GET, within)
    except BadRange as error:
        return refuse(request, f"{error}.", status=400)
    if request.htmx and "now" in request.GET:
        return render(request, "incidents/inc/now.html", words_context(request, found))
    row = found.page.detail.row
    stretch = stretch_of(found.chat, within)
    zoomed = within is found.core
    context = {
        **review_context(request, stretch, at or found.dwell),
        **words_context(request, found),
        "here": f"?show={CHAIN}&" if zoomed else "?",
        "moment_url": f"moment/?show={CHAIN}" if zoomed else "moment/",
        "table_url": f"table/?show={CHAIN}" if zoomed else "table/",
        "zoomed": zoomed,
        "zoomable": found.core is not None,
        "editing": request.GET.get("edit", ""),
        "people": _people(request),
        "others": [each for each in queries.chat_incidents(row.chat) if each.id != row.id],
        "share": request.build_absolute_uri(request.path),
    }
    return render(request, "incidents/incident.html", context)


@require_safe
@member
def incident_moment(request: PageRequest, incident_id: int) -> HttpResponse:
    """The chat as of one event (``at``) or moment (``t``, ms) of the incident."""
    found = incident_or_404(incident_id)
    try:
        return moment_answer(request, found.chat, _shown(request, found))
    except BadRange as error:
        return HttpResponse(f"{error}.", status=400, content_type="text/plain")


@require_safe
@member
def chat_incident(request: PageRequest, chat_id: int) -> HttpResponse:
    """To the chat's open incident, else to its newest one."""
    found = queries.incident_of(chat_id) or next(iter(queries.chat_incidents(chat_id, 1)), None)
    if found is None:
        raise Http404
    return redirect("incident", found.id)


@require_safe
@member
def incident_table(request: PageRequest, incident_id: int) -> HttpResponse:
    """What its axis draws, as a table."""
    found = incident_or_404(incident_id)
    within = _shown(request, found)
    here = f"?show={CHAIN}&" if within is found.core else "?"
    return table_answer(request, stretch_of(found.chat, within), here)


def words_context(request: PageRequest, found: Incident) -> dict[str, Any]:
    """What stands beside the axis: sentence, figures, chain, who did what, notes."""
    return {
        "nav": "incidents",
        "now": now_ms(),
        "operate": may_operate(request),
        "chat": found.chat,
        "title": found.chat.summary.title or found.chat.external_id,
        "incident": found.page,
        "detail": found.page.detail,
        "row": found.page.detail.row,
        "came": found.came,
        "head": found.chat.chat_seq,
    }


def incident_or_404(incident_id: int) -> Incident:
    found = incident_of(incident_id, now_ms())
    if found is None:
        raise Http404
    return found


def _shown(request: PageRequest, found: Incident) -> Range:
    """The whole incident, or where its chain happened."""
    if request.GET.get("show") == CHAIN and found.core is not None:
        return found.core
    return found.within


def _people(request: PageRequest) -> list[str]:
    """To whom it can be handed over."""
    if not may_operate(request):
        return []
    able = ("operator", "admin")
    return [who.name for who in queries.people_list() if who.active and who.role in able]
