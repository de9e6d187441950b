"""The audit trail, for admins."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ctxhealth.store import queries
from ctxhealth.store.clock import now_ms
from ctxhealth.web.access import PageRequest, admin
from ctxhealth.web.audit_words import line_of


@require_safe
@admin
def audit(request: PageRequest) -> HttpResponse:
    before = request.GET.get("before", "")
    number = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    page = queries.audit_page(before=number)
    lines = [line_of(row) for row in page.rows]
    context = {"nav": "audit", "now": now_ms(), "page": page, "lines": lines}
    return render(request, "web/audit.html", context)
