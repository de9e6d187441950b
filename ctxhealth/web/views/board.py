"""Chats: which one needs me."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ctxhealth.store import queries
from ctxhealth.store.clock import now_ms
from ctxhealth.store.queries.board_order import BadCursor
from ctxhealth.web import fragments
from ctxhealth.web.access import PageRequest, may_operate, member, refuse
from ctxhealth.web.columns import heads_of, sort_select, sort_words
from ctxhealth.web.filters import filters_of, link, query_of, selects_of

PAGE_ROWS = 100


@require_safe
@member
def board(request: PageRequest) -> HttpResponse:
    query = query_of(request.GET)
    try:
        page = queries.board_page(filters_of(query), request.GET.get("cursor"), PAGE_ROWS)
    except BadCursor as error:
        return refuse(request, str(error), status=400)
    now, operate = now_ms(), may_operate(request)
    rows = fragments.board_body(
        page.rows, page.groups, now, operate=operate, alone="cause" in query
    )
    context = {
        "nav": "chats",
        "now": now,
        "operate": operate,
        "rows": rows,
        "next": page.next,
        "next_query": link(query, cursor=page.next or ""),
        "page_size": PAGE_ROWS,
    }
    if request.htmx and "cursor" in request.GET:
        return render(request, "web/inc/rows.html", context)
    outcomes = queries.fleet_outcomes(now=now)
    return render(
        request,
        "web/board.html",
        {
            **context,
            "query": query,
            "filtered": bool(query.keys() - {"sort"}),
            "unfiltered": link({"sort": query.get("sort", "")}),
            "heads": heads_of(query),
            "sort": sort_select(query),
            "sorted": sort_words(query),
            "selects": selects_of(query, queries.filter_choices()),
            "live_query": link(query, view="board"),
            "ws_origin": f"{'wss' if request.is_secure() else 'ws'}://{request.get_host()}",
            "regions": fragments.board_header(
                page.counts_by_state, outcomes, now, query=query, oob=False
            ),
        },
    )
