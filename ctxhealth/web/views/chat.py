"""One chat: its page, the timeline's data, its events."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ctxhealth.core.model import ReadingPoint
from ctxhealth.core.presence import ENDED
from ctxhealth.store import queries
from ctxhealth.store.clock import now_ms
from ctxhealth.store.queries import ChatRow
from ctxhealth.web import fragments
from ctxhealth.web.access import PageRequest, may_operate, member
from ctxhealth.web.chat_load import load_attempt, load_chat
from ctxhealth.web.events import line_of, pretty
from ctxhealth.web.series import LANE_TYPES, series_of, table_of

EVENTS_PAGE = 100
EVENTS_ON_CHAT = 25
AROUND = 50
LANE_EVENTS = 1_000


def chat_or_404(chat_id: int) -> ChatRow:
    chat = queries.chat_get(chat_id)
    if chat is None:
        raise Http404
    return chat


@require_safe
@member
def chat(request: PageRequest, chat_id: int) -> HttpResponse:
    loaded = load_chat(chat_id)
    if loaded is None:
        raise Http404
    detail, extras = loaded
    now, operate = now_ms(), may_operate(request)
    events = queries.chat_events(chat_id, limit=EVENTS_ON_CHAT)
    return render(
        request,
        "web/chat.html",
        {
            "nav": "chats",
            "now": now,
            "chat": extras.chat,
            "title": detail.summary.title or extras.chat.external_id,
            "live_query": f"view=chat%3A{chat_id}",
            "lines": [line_of(event) for event in reversed(events)],
            "regions": fragments.chat_regions(detail, extras, now, operate=operate, oob=False),
        },
    )


@require_safe
@member
def chat_attempt(request: PageRequest, chat_id: int, first_seq: int) -> HttpResponse:
    """What one compaction did: its moments before and after, and its events."""
    chat = chat_or_404(chat_id)
    loaded = load_attempt(chat, first_seq)
    if loaded is None:
        raise Http404
    context = {
        "nav": "chats",
        "now": now_ms(),
        "chat": chat,
        "title": chat.summary.title or chat.external_id,
        "a": loaded.attempt,
        "change": loaded.change,
        "lines": [line_of(event) for event in loaded.events],
    }
    template = "web/inc/attempt.html" if request.htmx else "web/attempt.html"
    return render(request, template, context)


@require_safe
@member
def chat_series(request: PageRequest, chat_id: int) -> HttpResponse:
    return JsonResponse(_series(chat_or_404(chat_id))[1])


@require_safe
@member
def chat_timeline(request: PageRequest, chat_id: int) -> HttpResponse:
    """The drawing's table alternative."""
    chat = chat_or_404(chat_id)
    points, series = _series(chat)
    template = "web/inc/timeline_table.html" if request.htmx else "web/timeline.html"
    context = {"nav": "chats", "now": now_ms(), "chat": chat, "rows": table_of(points, series)}
    return render(request, template, context)


def _series(chat: ChatRow) -> tuple[list[ReadingPoint], dict[str, Any]]:
    points = queries.chat_readings(chat.id)
    return points, series_of(
        points,
        queries.chat_attempts(chat.id),
        queries.chat_latches(chat.id),
        queries.chat_commands(chat.id),
        queries.chat_events(chat.id, limit=LANE_EVENTS, types=LANE_TYPES),
        ended_at=chat.summary.last_event_at if chat.summary.connection in ENDED else None,
    )


@require_safe
@member
def chat_events(request: PageRequest, chat_id: int) -> HttpResponse:
    """The log, newest first; ``at`` shows the neighbourhood of one event, ``type`` filters."""
    chat = chat_or_404(chat_id)
    kind = request.GET.get("type", "")[:200]
    after = _whole(request.GET.get("after"))
    if after is not None:
        newer = queries.chat_events(chat_id, after=after, limit=EVENTS_PAGE)
        lines = [line_of(event) for event in reversed(newer)]
        context = {"now": now_ms(), "chat": chat, "lines": lines}
        return render(request, "web/inc/event_rows.html", context)
    at, before = _whole(request.GET.get("at")), _whole(request.GET.get("before"))
    top = at + AROUND if at is not None else before
    found = queries.chat_events(
        chat_id, limit=EVENTS_PAGE + 1, types=[kind] if kind else [], before=top
    )
    rows = found[-EVENTS_PAGE:]
    context = {
        "nav": "chats",
        "now": now_ms(),
        "chat": chat,
        "title": chat.summary.title or chat.external_id,
        "lines": [line_of(event) for event in reversed(rows)],
        "older": rows[0].chat_seq if len(found) > EVENTS_PAGE else None,
        "type": kind,
        "types": queries.chat_event_types(chat_id),
        "at": at,
        "newest": top is None or top > chat.chat_seq,
    }
    partial = request.htmx and "before" in request.GET
    return render(request, "web/inc/event_rows.html" if partial else "web/events.html", context)


@require_safe
@member
def chat_event(request: PageRequest, chat_id: int, chat_seq: int) -> HttpResponse:
    """The raw JSON of one event."""
    event = queries.chat_event(chat_id, chat_seq)
    if event is None:
        raise Http404
    context = {"nav": "chats", "now": now_ms(), "chat": chat_or_404(chat_id),
               "line": line_of(event), "raw": pretty(event)}  # fmt: skip
    template = "web/inc/event_raw.html" if request.htmx else "web/event.html"
    return render(request, template, context)


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None
