"""Agents: who is connected, what they can do, what got lost; and how their summarizers do."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ctxhealth.store import queries
from ctxhealth.store.clock import now_ms
from ctxhealth.web.access import PageRequest, member
from ctxhealth.web.agent_rows import agent_lines
from ctxhealth.web.events import line_of
from ctxhealth.web.filters import link
from ctxhealth.web.summarizer_rows import summarizer_lines


@require_safe
@member
def agents(request: PageRequest) -> HttpResponse:
    text = request.GET.get("q", "").strip()[:200]
    files = queries.session_files(page=_page(request), text=text)
    context = {
        "nav": "agents",
        "now": now_ms(),
        "q": text,
        "agents": agent_lines(queries.agents_list(text=text)),
        "files": files,
        "file_lines": agent_lines(files.rows),
        **_summarizers(),
        "live_query": link({"q": text}, view="agents"),
    }
    return render(request, "agents/page.html", context)


@require_safe
@member
def summarizers(request: PageRequest) -> HttpResponse:
    """The fleet's summarizers alone, looked at again now and then."""
    context = {"nav": "agents", "now": now_ms(), **_summarizers()}
    template = "agents/inc/summarizers.html" if request.htmx else "agents/summarizers.html"
    return render(request, template, context)


@require_safe
@member
def agent(request: PageRequest, agent_id: int) -> HttpResponse:
    """One agent: what it says of itself, its connections, what of it was refused."""
    row = queries.agent_get(agent_id)
    if row is None:
        raise Http404
    rejects = queries.agent_rejects(agent_id) if row.rejects else []
    context = {
        "nav": "agents",
        "now": now_ms(),
        "agent": agent_lines([row])[0],
        "connections": queries.agent_connections(agent_id),
        "streams": queries.agent_streams(agent_id),
        "rejects": [line_of(event) for event in rejects],
    }
    return render(request, "agents/detail.html", context)


def _summarizers() -> dict[str, object]:
    health = queries.summarizer_health()
    return {"health": health, "summarizers": summarizer_lines(health.rows)}


def _page(request: PageRequest) -> int:
    text = request.GET.get("files", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
