"""Tokens: made, rotated with an overlap, revoked; each secret is shown once."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.web.access import PageRequest, admin
from ctxhealth.web.forms import RotateForm, TokenForm
from ctxhealth.web.settings_frame import add_error, settings_page

DAY_MS = 86_400_000


@require_http_methods(["GET", "HEAD", "POST"])
@admin
def tokens(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, TokenForm())
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    data = form.cleaned_data
    made = writes.token_create(
        name=data["name"],
        scopes=data["scopes"].split(),
        agent_name=data["agent_name"] or None,
        by=request.user,
        expires_at=now_ms() + data["days"] * DAY_MS if data["days"] else None,
    )
    # Rendered, not redirected: the secret must pass through no cookie, address or store.
    return _page(request, TokenForm(), made=made)


@require_POST
@admin
def token_rotate(request: PageRequest, token_id: int) -> HttpResponse:
    form = RotateForm(request.POST)
    if not form.is_valid():
        return _page(request, TokenForm(), rotating=(token_id, form), status=422)
    try:
        made = writes.token_rotate(
            token_id=token_id, hours=form.cleaned_data["hours"], by=request.user
        )
    except ValueError as error:
        add_error(form, error)
        return _page(request, TokenForm(), rotating=(token_id, form), status=422)
    return _page(request, TokenForm(), made=made, overlap=form.cleaned_data["hours"])


@require_POST
@admin
def token_revoke(request: PageRequest, token_id: int) -> HttpResponse:
    writes.token_revoke(token_id=token_id, by=request.user)
    return redirect("tokens")


def _page(
    request: PageRequest,
    form: TokenForm,
    *,
    made: writes.TokenSecret | None = None,
    overlap: int | None = None,
    rotating: tuple[int, RotateForm] | None = None,
    status: int = 200,
) -> HttpResponse:
    rows = queries.tokens_list()
    now = now_ms()
    context = {
        "form": form,
        "tokens": [row for row in rows if row.usable(now)],
        "ended": [row for row in rows if not row.usable(now)],
        "made": made.token if made else None,
        "secret": made.secret if made else "",
        "overlap": overlap,
        "rotating": rotating,
    }
    return settings_page(request, "tokens", context, status)
