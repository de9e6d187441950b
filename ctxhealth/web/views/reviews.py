"""Any stretch of any chat, reviewed as an incident is."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.store.queries import ChatRow
from ctxhealth.store.queries.bundles import bundle_of_chat
from ctxhealth.store.queries.ranges import Range, seq_at
from ctxhealth.web.access import PageRequest, may_operate, member, refuse
from ctxhealth.web.incidents_load import Stretch, head_of, moment_at, stretch_of
from ctxhealth.web.incidents_moment import Moment, steps_of
from ctxhealth.web.incidents_range import (
    BadRange,
    address_of,
    asked_event,
    asked_range,
    field_of,
    narrowed,
)


@require_http_methods(["GET", "HEAD", "POST"])
@member
def chat_review(request: PageRequest, chat_id: int) -> HttpResponse:
    """Any stretch of a chat; POST keeps it as a review."""
    chat = _chat(chat_id)
    if request.method == "POST":
        return _keep(request, chat)
    try:
        within = asked_range(request.GET, chat.id, _head(chat))
        at = asked_event(request.GET, within) if within else None
    except BadRange as error:
        return refuse(request, f"{error}.", status=400)
    if within is None:
        why = "This chat has no event yet: there is nothing to review."
        return refuse(request, why, status=404, heading="Nothing to review")
    stretch = stretch_of(chat, within)
    return render(
        request,
        "incidents/range.html",
        {
            **review_context(request, stretch, at or within.last),
            "here": address_of(request.GET),
            "moment_url": f"moment/{address_of(request.GET)}",
            "table_url": f"table/{address_of(request.GET)}",
            "narrowed": narrowed(request.GET),
            "since": field_of(within.first_at),
            "until": field_of(within.last_at),
        },
    )


def _keep(request: PageRequest, chat: ChatRow) -> HttpResponse:
    """Set the stretch aside under a title, so that notes can be written on it."""
    try:
        within = asked_range(request.POST, chat.id, _head(chat))
        if within is None:
            raise BadRange("first: this chat has no event yet")
        made = writes.review_create(
            chat_id=chat.id,
            from_seq=within.first,
            to_seq=within.last,
            title=request.POST.get("title", ""),
            by=request.user,
        )
    except BadRange as error:
        return refuse(request, f"{error}.", status=400)
    except writes.Refused as refusal:
        return refuse(request, refusal.detail, status=400 if refusal.reason == "bad" else 403)
    return redirect("incident", made)


@require_safe
@member
def chat_moment(request: PageRequest, chat_id: int) -> HttpResponse:
    """The chat as of one event (``at``) or moment (``t``, ms) of a stretch."""
    chat = _chat(chat_id)
    try:
        within = asked_range(request.GET, chat.id, _head(chat))
        if within is None:
            raise Http404
        return moment_answer(request, chat, within)
    except BadRange as error:
        return HttpResponse(f"{error}.", status=400, content_type="text/plain")


@require_safe
@member
def chat_table(request: PageRequest, chat_id: int) -> HttpResponse:
    """What the axis draws of a stretch, as a table."""
    chat = _chat(chat_id)
    try:
        within = asked_range(request.GET, chat.id, _head(chat))
    except BadRange as error:
        return refuse(request, f"{error}.", status=400)
    if within is None:
        raise Http404
    return table_answer(request, stretch_of(chat, within), address_of(request.GET))


def table_answer(request: PageRequest, stretch: Stretch, here: str) -> HttpResponse:
    chat = stretch.chat
    context = {
        "nav": "incidents",
        "chat": chat,
        "title": chat.summary.title or chat.external_id,
        "table": stretch.table,
        "here": here,
    }
    partial = "incidents/inc/table_rows.html" if request.htmx else "incidents/table.html"
    return render(request, partial, context)


def moment_answer(request: HttpRequest, chat: ChatRow, within: Range) -> HttpResponse:
    """The fragment that the scrubber puts in place of the moment before."""
    seq = asked_event(request.GET, within)
    if seq is None:
        text = request.GET.get("t", "")
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise BadRange("t: must be a moment in milliseconds")
        seq = seq_at(chat.id, int(text), within)
    context = {"chat": chat, "moment": _moment(chat.id, seq, within), "now": now_ms()}
    return render(request, "incidents/inc/moment.html", context)


def review_context(request: PageRequest, stretch: Stretch, at: int) -> dict[str, Any]:
    """What the axis, the scrubber and the table of any review show."""
    chat = stretch.chat
    moment = _moment(chat.id, at, stretch.within)
    return {
        "nav": "incidents",
        "now": now_ms(),
        "operate": may_operate(request),
        "chat": chat,
        "title": chat.summary.title or chat.external_id,
        "stretch": stretch,
        "moment": moment,
        "steps": steps_of(moment.seq, stretch.within, stretch.axis.moments()),
    }


def _chat(chat_id: int) -> ChatRow:
    chat = queries.chat_get(chat_id)
    if chat is None:
        raise Http404
    return chat


def _head(chat: ChatRow) -> int:
    return head_of(chat, bundle_of_chat(chat.id))


def _moment(chat_id: int, seq: int, within: Range) -> Moment:
    moment = moment_at(chat_id, seq, within)
    if moment is None:
        raise Http404
    return moment
