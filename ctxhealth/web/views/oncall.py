"""On call: this shift at a glance, who takes what, what stays silent, what the next one is told."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.web.access import PageRequest, may_operate, member
from ctxhealth.web.markdown import html_of
from ctxhealth.web.oncall_draft import draft_of

HOURS = (4, 8, 12, 24)
HOUR_MS = 3_600_000
SILENT_MINUTES = (15, 30, 60, 240)


@require_safe
@member
def oncall(request: PageRequest) -> HttpResponse:
    now = now_ms()
    shown = _now(request, now)
    context = {**shown, **_note(), "nav": "oncall"}
    if "draft" in request.GET and may_operate(request):
        context["draft"] = draft_of(shown["shift"], now)  # type: ignore[arg-type]
    return render(request, "oncall/page.html", context)


@require_safe
@member
def oncall_now(request: PageRequest) -> HttpResponse:
    """What changes by itself, looked at again every few seconds; the note is left alone."""
    return render(request, "oncall/inc/now.html", _now(request, now_ms()))


@require_POST
@member
def handover(request: PageRequest) -> HttpResponse:
    """Save the hand-over note; what was typed is not lost where it cannot be."""
    text, seen = request.POST.get("text", ""), request.POST.get("seen", "")
    number = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 19 else None
    try:
        writes.handover_save(text=text, seen=number, by=request.user)
    except writes.Refused as refusal:
        context = {**_now(request, now_ms()), **_note(), "nav": "oncall", "draft": text}
        context["trouble"] = refusal.detail
        return render(request, "oncall/page.html", context, status=_status(refusal))
    return _back(request, "handover")


@require_POST
@member
def group_own(request: PageRequest, group_id: int) -> HttpResponse:
    """Take a cause, hand it to somebody (``to``), or let go of it (``to`` empty)."""
    name = request.POST.get("to", "")[:200]
    person = queries.person_get(username=name) if name else None
    if name and person is None:
        messages.error(request, f"There is nobody called {name[:60]}.")
        return _back(request)
    owner = person.user if person else None
    return _done(request, lambda: writes.group_own(group_id=group_id, owner=owner, by=request.user))


@require_POST
@member
def group_silence(request: PageRequest, group_id: int) -> HttpResponse:
    text = request.POST.get("minutes", "")
    minutes = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    reason = request.POST.get("reason", "")
    return _done(
        request,
        lambda: writes.silence_set(
            group_id=group_id, minutes=minutes, reason=reason, by=request.user
        ),
    )


@require_POST
@member
def silence_end(request: PageRequest, silence_id: int) -> HttpResponse:
    return _done(request, lambda: writes.silence_end(silence_id=silence_id, by=request.user))


def _now(request: PageRequest, now: int) -> dict[str, object]:
    hours = _hours(request)
    people = [row.name for row in queries.people_list() if row.active and row.role != "viewer"]
    return {
        "now": now,
        "hours": hours,
        "choices": HOURS,
        "shift": queries.shift(since=now - hours * HOUR_MS, now=now),
        "operate": may_operate(request),
        "people": people,
        "minutes": SILENT_MINUTES,
        "me": request.user.get_username(),
    }


def _note() -> dict[str, object]:
    notes = queries.handover_notes()
    newest = notes[0] if notes else None
    return {
        "note": newest,
        "note_html": html_of(newest.text) if newest else "",
        "earlier": [(row, html_of(row.text)) for row in notes[1:]],
    }


def _hours(request: PageRequest) -> int:
    text = request.GET.get("hours", "") or request.POST.get("hours", "")
    return int(text) if text in {str(hours) for hours in HOURS} else 8


def _done(request: PageRequest, write: Callable[[], object]) -> HttpResponse:
    try:
        write()
    except writes.Refused as refusal:
        messages.error(request, refusal.detail)
    return _back(request)


def _back(request: PageRequest, place: str = "open") -> HttpResponse:
    return HttpResponseRedirect(f"{reverse('oncall')}?hours={_hours(request)}#{place}")


def _status(refusal: writes.Refused) -> int:
    return {"no_right": 403, "server_read_only": 403, "changed": 409}.get(refusal.reason, 422)
