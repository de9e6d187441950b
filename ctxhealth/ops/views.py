"""/healthz, /readyz and /metrics: for machines, without a session."""

from __future__ import annotations

from ipaddress import ip_address

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from ctxhealth import runtime
from ctxhealth.ops.health import readiness
from ctxhealth.ops.metrics import exposition
from ctxhealth.store import people, queries, writes
from ctxhealth.store.clock import now_ms


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@require_safe
async def readyz(request: HttpRequest) -> HttpResponse:
    """200 where it can do its work, 503 with the reason where it cannot."""
    found = await readiness(runtime.get())
    return JsonResponse(found.document(), status=200 if found.ready else 503)


@require_safe
async def metrics(request: HttpRequest) -> HttpResponse:
    """For this machine, for a token with the scope ``read``, and for people with a role."""
    if not await sync_to_async(may_scrape)(request):
        refusal = "Scrape from this machine, or send a bearer token with the scope read.\n"
        response = HttpResponse(refusal, status=401, content_type="text/plain; charset=utf-8")
        response["WWW-Authenticate"] = "Bearer"
        return response
    text = await sync_to_async(exposition)(runtime.get())
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def may_scrape(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        now = now_ms()
        found = queries.token_check(token, now)
        if found is None or not {"read", "operate"} & found.scopes:
            return False
        writes.token_seen(token_id=found.id, last_used_at=found.last_used_at, now=now)
        return True
    return _of_this_machine(request) or people.role_of(request.user) is not None


def _of_this_machine(request: HttpRequest) -> bool:
    """A direct loopback connection: a proxy on this machine speaks for others."""
    if request.headers.get("X-Forwarded-For") or request.headers.get("Forwarded"):
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
