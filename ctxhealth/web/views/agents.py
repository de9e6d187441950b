"""Agents: who is connected, what they can do, what got lost."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ctxhealth.store import queries
from ctxhealth.store.clock import now_ms
from ctxhealth.web.access import PageRequest, member
from ctxhealth.web.agent_rows import agent_lines


@require_safe
@member
def agents(request: PageRequest) -> HttpResponse:
    context = {
        "nav": "agents",
        "now": now_ms(),
        "agents": agent_lines(queries.agents_list()),
        "live_query": "view=agents",
    }
    return render(request, "web/agents.html", context)
