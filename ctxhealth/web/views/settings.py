"""What admins configure: tokens; and the audit trail they read."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.web.access import PageRequest, admin
from ctxhealth.web.audit_words import line_of
from ctxhealth.web.forms import TokenForm

DAY_MS = 86_400_000


@require_http_methods(["GET", "HEAD", "POST"])
@admin
def tokens(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _tokens(request, TokenForm())
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _tokens(request, form, status=422)
    data = form.cleaned_data
    made = writes.token_create(
        name=data["name"],
        scopes=data["scopes"].split(),
        agent_name=data["agent_name"] or None,
        by=request.user,
        expires_at=now_ms() + data["days"] * DAY_MS if data["days"] else None,
    )
    # Rendered, not redirected: the secret must pass through no cookie, address or store.
    return _tokens(request, TokenForm(), made=made)


def _tokens(
    request: PageRequest,
    form: TokenForm,
    *,
    made: writes.TokenSecret | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "nav": "tokens",
        "now": now_ms(),
        "form": form,
        "tokens": queries.tokens_list(),
        "made": made.token if made else None,
        "secret": made.secret if made else "",
        "ws_origin": f"{'wss' if request.is_secure() else 'ws'}://{request.get_host()}",
    }
    return render(request, "web/tokens.html", context, status=status)


@require_POST
@admin
def token_revoke(request: PageRequest, token_id: int) -> HttpResponse:
    writes.token_revoke(token_id=token_id, by=request.user)
    return redirect("tokens")


@require_safe
@admin
def audit(request: PageRequest) -> HttpResponse:
    before = request.GET.get("before", "")
    number = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    page = queries.audit_page(before=number)
    lines = [line_of(row) for row in page.rows]
    context = {"nav": "audit", "now": now_ms(), "page": page, "lines": lines}
    return render(request, "web/audit.html", context)
