"""What people add to an incident: notes, a verdict, who takes care of it."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from ctxhealth.store import queries, writes
from ctxhealth.web.access import PageRequest, member


@require_POST
@member
def note_add(request: PageRequest, incident_id: int) -> HttpResponse:
    text = request.POST.get("text", "")
    return _done(
        request,
        incident_id,
        lambda: writes.note_add(incident_id=incident_id, text=text, by=request.user),
    )


@require_POST
@member
def note_edit(request: PageRequest, incident_id: int, note_id: int) -> HttpResponse:
    """Save one's own note, or delete it where that button was pressed."""
    if request.POST.get("does") == "delete":
        return _done(
            request, incident_id, lambda: writes.note_delete(note_id=note_id, by=request.user)
        )
    text = request.POST.get("text", "")
    return _done(
        request,
        incident_id,
        lambda: writes.note_edit(note_id=note_id, text=text, by=request.user),
    )


@require_POST
@member
def verdict(request: PageRequest, incident_id: int) -> HttpResponse:
    said, text = request.POST.get("verdict", ""), request.POST.get("text", "")
    return _done(
        request,
        incident_id,
        lambda: writes.verdict_set(
            incident_id=incident_id, verdict=said, text=text if said else "", by=request.user
        ),
        place="verdict",
    )


@require_POST
@member
def own(request: PageRequest, incident_id: int) -> HttpResponse:
    """Take it, hand it to somebody (``to``), or let go of it (``to`` empty)."""
    name = request.POST.get("to", "").replace("\x00", "")
    person = queries.person_get(username=name) if name else None
    if name and person is None:
        messages.error(request, f"There is nobody called {name[:60]}.")
        return _back(incident_id, "owner")
    owner = person.user if person else None
    detail = queries.incident_detail(incident_id)
    group = detail.group if detail else None
    if group is not None and request.POST.get("group"):
        return _done(
            request,
            incident_id,
            lambda: writes.group_own(group_id=group.id, owner=owner, by=request.user),
            place="owner",
        )
    return _done(
        request,
        incident_id,
        lambda: writes.incident_own(incident_id=incident_id, owner=owner, by=request.user),
        place="owner",
    )


def _done(
    request: PageRequest, incident_id: int, write: Callable[[], object], place: str = "notes"
) -> HttpResponse:
    """Do it, or say why not, and show the page again at that place."""
    try:
        write()
    except writes.Refused as refusal:
        if refusal.reason == "no_incident":
            return redirect("incidents")
        messages.error(request, refusal.detail)
    return _back(incident_id, place)


def _back(incident_id: int, place: str) -> HttpResponse:
    return HttpResponseRedirect(f"{reverse('incident', args=[incident_id])}#{place}")
