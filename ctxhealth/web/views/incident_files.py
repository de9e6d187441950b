"""Incidents as files: the report for people, the bundle for another server."""

from __future__ import annotations

import re

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from ctxhealth.store import writes
from ctxhealth.store.bundles import TooLarge, bundle_of
from ctxhealth.store.clock import now_ms
from ctxhealth.web.access import PageRequest, member, refuse
from ctxhealth.web.export.archive import report_of, zip_of
from ctxhealth.web.incidents_load import Incident, stretch_of
from ctxhealth.web.views.incidents import incident_or_404


@require_safe
@member
def report(request: PageRequest, incident_id: int) -> HttpResponse:
    found = incident_or_404(incident_id)
    link = request.build_absolute_uri(reverse("incident", args=[incident_id]))
    made = report_of(
        found,
        stretch_of(found.chat, found.within),
        link=link,
        made_at=now_ms(),
        made_by=request.user.get_username(),
    )
    _note(request, found, "export.report")
    return _file(zip_of(made), "application/zip", f"{_name(found)}.zip")


@require_safe
@member
def bundle(request: PageRequest, incident_id: int) -> HttpResponse:
    found = incident_or_404(incident_id)
    try:
        data = bundle_of(incident_id, by=request.user.get_username())
    except TooLarge as error:
        return refuse(request, f"{error} The report has no such limit.", status=413,
                      heading="Too large for a bundle")  # fmt: skip
    if data is None:
        raise Http404
    _note(request, found, "export.bundle")
    return _file(data, "application/json", f"{_name(found)}.ctxhealth.json")


def _note(request: PageRequest, found: Incident, action: str) -> None:
    """What left the server stands in the trail."""
    row = found.page.detail.row
    writes.audit(action=action, result="done", by=request.user, target=f"incident {row.id}",
                 chat=row.chat)  # fmt: skip


def _name(found: Incident) -> str:
    row = found.page.detail.row
    title = re.sub(r"[^A-Za-z0-9]+", "-", row.chat_title or row.chat_external).strip("-")
    return f"{row.kind if row.kind == 'review' else 'incident'}-{row.id}-{title[:60]}".rstrip("-")


def _file(data: bytes, kind: str, name: str) -> HttpResponse:
    response = HttpResponse(data, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
