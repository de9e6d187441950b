"""Who may see and press: every page asks here first."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.middleware import HtmxDetails

from ctxhealth.store import people

P = ParamSpec("P")


class PageRequest(HttpRequest):
    """A request of somebody with a role: viewer, operator or admin."""

    htmx: HtmxDetails
    role: str
    user: Any


View = Callable[Concatenate[PageRequest, P], HttpResponse]


def member(view: View[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Signed in and with a role; others go to the login, or are told that they have none."""

    @wraps(view)
    def checked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        user = request.user
        if not user.is_authenticated:
            return _to_login(request)
        role = people.role_of(user)
        if role is None:
            return refuse(request, "This account has no role yet. Ask an admin for one.")
        request.role = role  # type: ignore[attr-defined]
        return view(request, *args, **kwargs)  # type: ignore[arg-type]

    return checked


def admin(view: View[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    @wraps(view)
    def checked(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.role != "admin":
            return refuse(request, "Only admins configure.")
        return view(request, *args, **kwargs)

    return member(checked)


def may_operate(request: PageRequest) -> bool:
    """Whether this person sees buttons at all."""
    return not settings.CTXHEALTH_READ_ONLY and request.role in ("operator", "admin")


def why_not_operate(request: PageRequest) -> str:
    """Why this person may press nothing; empty where they may."""
    if settings.CTXHEALTH_READ_ONLY:
        return "This server is read-only: no action leaves it."
    if request.role not in ("operator", "admin"):
        return "Viewers look; pressing needs the role operator."
    return ""


def refuse(request: HttpRequest, why: str, status: int = 403, heading: str = "") -> HttpResponse:
    context = {"why": why, "heading": heading or _HEADINGS[status]}
    return render(request, "web/refused.html", context, status=status)


_HEADINGS = {400: "Not understood", 403: "Not allowed", 405: "Not a page"}


def _to_login(request: HttpRequest) -> HttpResponse:
    if request.headers.get("HX-Request"):
        # A fragment swapped into the page would show the login inside it.
        back = _path_of(request, request.headers.get("HX-Current-URL", ""))
        answer = redirect_to_login(back) if back else redirect(settings.LOGIN_URL)
        return HttpResponse(status=401, headers={"HX-Redirect": answer["Location"]})
    if request.method in ("GET", "HEAD"):
        return redirect_to_login(request.get_full_path())
    # The address of a form shows nothing by itself: back to the page that it stood on.
    return redirect_to_login(_path_of(request, request.headers.get("Referer", "")) or "/")


def _path_of(request: HttpRequest, url: str) -> str:
    """Path and query of a page of this server; empty for anything else."""
    if not url_has_allowed_host_and_scheme(url, {request.get_host()}, request.is_secure()):
        return ""
    parts = urlsplit(url)
    return parts._replace(scheme="", netloc="", fragment="").geturl()
