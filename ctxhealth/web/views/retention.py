"""Retention: how long quiet chats are kept, and what that would delete."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from ctxhealth.store import queries, writes
from ctxhealth.store.projects import default_project
from ctxhealth.store.retention import Forecast, forecast
from ctxhealth.web.access import PageRequest, admin
from ctxhealth.web.forms import RetentionForm
from ctxhealth.web.settings_frame import add_error, settings_page


@require_http_methods(["GET", "HEAD", "POST"])
@admin
def retention(request: PageRequest) -> HttpResponse:
    """``try`` counts what the days would delete; ``set`` and ``off`` decide."""
    days = queries.retention_days(project=default_project().pk)
    if request.method != "POST":
        told = forecast(days=days) if days is not None else None
        return _page(request, RetentionForm(initial={"days": days or 90}), days, told)
    if "off" in request.POST:
        writes.retention_set(days=None, by=request.user)
        return redirect("retention")
    form = RetentionForm(request.POST)
    if not form.is_valid():
        return _page(request, form, days, None, status=422)
    wanted = form.cleaned_data["days"]
    if "try" in request.POST:
        return _page(request, form, days, forecast(days=wanted), tried=wanted)
    try:
        writes.retention_set(days=wanted, reason=form.cleaned_data["reason"], by=request.user)
    except ValueError as error:
        add_error(form, error)
        return _page(request, form, days, None, status=422)
    return redirect("retention")


def _page(
    request: PageRequest,
    form: RetentionForm,
    days: int | None,
    told: Forecast | None,
    *,
    tried: int | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {"form": form, "days": days, "told": told, "tried": tried}
    return settings_page(request, "retention", context, status)
