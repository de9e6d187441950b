"""Signing in and out, with brakes against guessing."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from ctxhealth.store import writes
from ctxhealth.store.clock import now_ms
from ctxhealth.web import brakes
from ctxhealth.web.forms import LoginForm
from ctxhealth.web.origin import address_of

BACKEND = "django.contrib.auth.backends.ModelBackend"
WRONG = "Name and password do not fit."


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def login_page(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect(settings.LOGIN_REDIRECT_URL)
    if request.method != "POST":
        return _form(request, "")
    form = LoginForm(request.POST)
    if not form.is_valid():
        return _form(request, WRONG, 400)
    return _try(request, form.cleaned_data["username"], form.cleaned_data["password"])


def _try(request: HttpRequest, username: str, password: str) -> HttpResponse:
    address, now = address_of(request), now_ms()
    wait = brakes.wait_s(username, address, now)
    if wait:
        writes.audit(action="login", result="refused: too many tries", by=username, ip=address)
        return _form(request, f"Too many tries. Try again in {wait} s.", 429, username)
    user = authenticate(request, username=username, password=password)
    if user is None:
        writes.audit(action="login", result=brakes.FAILED, by=username, ip=address)
        return _form(request, WRONG, 403, username)
    login(request, user)
    writes.audit(action="login", result="done", by=user, ip=address)
    return redirect(_next(request))


def _form(request: HttpRequest, trouble: str, status: int = 200, name: str = "") -> HttpResponse:
    context = {"trouble": trouble, "username": name, "next": _next(request)}
    return render(request, "web/login.html", context, status=status)


def _next(request: HttpRequest) -> str:
    """Where to go afterwards: a path of this very host, else the chats."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if safe else resolve_url(settings.LOGIN_REDIRECT_URL)


@require_http_methods(["GET", "HEAD", "POST"])
def login_once(request: HttpRequest, token: str) -> HttpResponse:
    """A GET shows a button only: a mail scanner or a preview must not use the link up."""
    if request.method != "POST":
        return render(request, "web/login_once.html")
    user = writes.login_link_use(token=token, ip=address_of(request))
    if user is None:
        trouble = "This link has been used already, is too old, or was never made."
        return render(request, "web/login_once.html", {"trouble": trouble}, status=403)
    login(request, user, backend=BACKEND)
    return redirect(settings.LOGIN_REDIRECT_URL)


@require_POST
def logout_page(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        writes.audit(action="logout", result="done", by=request.user, ip=address_of(request))
    logout(request)
    return redirect(settings.LOGOUT_REDIRECT_URL or "login")
