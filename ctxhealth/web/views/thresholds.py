"""Thresholds: what they are, what another value would have flagged, setting and resetting."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from ctxhealth.core.tunable import BY_NAME
from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.store.projects import default_project
from ctxhealth.store.trials import TRIALS, Trial
from ctxhealth.web import thresholds as shown
from ctxhealth.web.access import PageRequest, admin, member, refuse
from ctxhealth.web.forms import ThresholdForm
from ctxhealth.web.settings_frame import settings_page


@require_safe
@member
def settings_home(request: PageRequest) -> HttpResponse:
    """The first tab that this person may see."""
    return redirect("tokens" if request.role == "admin" else "thresholds")


@require_safe
@member
def thresholds(request: PageRequest) -> HttpResponse:
    return _page(request)


@require_POST
@admin
def threshold_set(request: PageRequest, name: str) -> HttpResponse:
    """Set, reset or try one, as the button says."""
    if name not in BY_NAME:
        return refuse(request, "There is no such threshold.", status=400)
    if "reset" in request.POST:
        writes.threshold_reset(name=name, reason=request.POST.get("reason", ""), by=request.user)
        return redirect("thresholds")
    form = ThresholdForm(request.POST)
    if not form.is_valid():
        return _page(request, name, form.first_error(), status=422)
    value, reason = form.cleaned_data["value"], form.cleaned_data["reason"]
    try:
        if "try" in request.POST:
            trial = TRIALS.start(name, value)
            if request.htmx:
                return _trial(request, trial)
            return redirect("threshold_trial", trial_id=trial.id)
        writes.threshold_set(name=name, shown=value, reason=reason, by=request.user)
    except ValueError as error:
        return _page(request, name, str(error).partition(": ")[2].capitalize(), status=422)
    return redirect("thresholds")


@require_safe
@member
def threshold_trial(request: PageRequest, trial_id: str) -> HttpResponse:
    """How far a trial is; polled by the page, a page of its own without JavaScript."""
    trial = TRIALS.get(trial_id)
    if trial is None:
        return refuse(request, "That trial is gone: the server was restarted.", status=400)
    if request.htmx:
        return _trial(request, trial)
    return settings_page(request, "trial", {"trial": trial, "tunable": BY_NAME[trial.name]})


def _trial(request: PageRequest, trial: Trial) -> HttpResponse:
    context = {"trial": trial, "tunable": BY_NAME[trial.name], "now": now_ms()}
    return render(request, "web/settings/inc/trial.html", context)


def _page(
    request: PageRequest, name: str = "", trouble: str = "", status: int = 200
) -> HttpResponse:
    project = default_project().pk
    context = {
        "lines": shown.lines(project),
        "judging": queries.judging_status(project=project),
        "wrong": name,
        "trouble": trouble,
        "typed": request.POST.get("value", ""),
    }
    return settings_page(request, "thresholds", context, status)
