"""People and their roles: added, changed, disabled, given a login link."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from ctxhealth.store import queries, writes
from ctxhealth.store.people import ROLES
from ctxhealth.web.access import PageRequest, admin
from ctxhealth.web.forms import PersonForm, RoleForm
from ctxhealth.web.settings_frame import add_error, settings_page


@require_http_methods(["GET", "HEAD", "POST"])
@admin
def people(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, PersonForm())
    form = PersonForm(request.POST)
    if form.is_valid():
        name, role = form.cleaned_data["name"], form.cleaned_data["role"]
        try:
            if queries.person_get(username=name) is not None:
                raise ValueError(f"name: there is somebody called {name} already")
            user = writes.user_give(username=name, role=role, by=request.user)
        except ValueError as error:
            add_error(form, error)
        else:
            return _page(request, PersonForm(), link=(name, writes.login_link_create(user=user)))
    return _page(request, form, status=422)


@require_POST
@admin
def person_role(request: PageRequest, user_id: int) -> HttpResponse:
    """Another role; enables who was disabled."""
    person, form = queries.person_get(user_id=user_id), RoleForm(request.POST)
    if person is None or not form.is_valid():
        return _page(request, PersonForm(), trouble="That person or role is not known.", status=422)
    try:
        writes.user_give(username=person.name, role=form.cleaned_data["role"], by=request.user)
    except ValueError as error:
        return _page(request, PersonForm(), trouble=_said(error), status=409)
    return redirect("people")


@require_POST
@admin
def person_disable(request: PageRequest, user_id: int) -> HttpResponse:
    person = queries.person_get(user_id=user_id)
    try:
        if person is not None:
            writes.user_disable(username=person.name, by=request.user)
    except ValueError as error:
        return _page(request, PersonForm(), trouble=_said(error), status=409)
    return redirect("people")


@require_POST
@admin
def person_link(request: PageRequest, user_id: int) -> HttpResponse:
    """A login that works once, for who has none or lost it; shown once."""
    person = queries.person_get(user_id=user_id)
    if person is None or not person.active:
        trouble = "A login link is for somebody who may sign in: give them a role first."
        return _page(request, PersonForm(), trouble=trouble, status=409)
    link = writes.login_link_create(user=person.user)
    return _page(request, PersonForm(), link=(person.name, link))


def _said(error: ValueError) -> str:
    return f"{str(error).removeprefix('name: ')}.".capitalize()


def _page(
    request: PageRequest,
    form: PersonForm,
    *,
    link: tuple[str, str] | None = None,
    trouble: str = "",
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": form,
        "people": queries.people_list(),
        "roles": ROLES,
        "link": link,
        "minutes": writes.LOGIN_MINUTES,
        "trouble": trouble,
        "me": request.user.pk,
    }
    return settings_page(request, "people", context, status)
