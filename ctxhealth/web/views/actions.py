"""The buttons: a dialog that says what would happen, the press, the receipt."""

from __future__ import annotations

import secrets
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ctxhealth.core.model import ChatDetail, LatchView, Severity
from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.store.queries import ChatRow, CommandRow
from ctxhealth.web.access import PageRequest, may_operate, member, refuse, why_not_operate
from ctxhealth.web.actions import ACTIONS, obstacle_to, open_latches, reachable
from ctxhealth.web.forms import PressForm
from ctxhealth.web.origin import address_of, request_id_of
from ctxhealth.web.preview import preview_of
from ctxhealth.web.receipts import Receipt, receipt_of, receipts_of
from ctxhealth.web.views.chat import chat_or_404


@require_http_methods(["GET", "HEAD", "POST"])
@member
def chat_action(request: PageRequest, chat_id: int, kind: str) -> HttpResponse:
    if kind not in ACTIONS:
        raise Http404
    chat = chat_or_404(chat_id)
    detail = queries.chat_detail(chat_id)
    if detail is None:
        raise Http404
    if request.method == "POST":
        return _press(request, chat, detail, kind)
    why = why_not_operate(request)
    if why:
        return refuse(request, why)
    return _dialog(request, chat, detail, kind, PressForm(), latch=request.GET.get("latch", ""))


def _press(request: PageRequest, chat: ChatRow, detail: ChatDetail, kind: str) -> HttpResponse:
    form = PressForm(request.POST)
    if not may_operate(request):
        _audit_refused(request, chat, kind, why_not_operate(request))
        return refuse(request, why_not_operate(request))
    latch = str(request.POST.get("latch", ""))
    if not form.is_valid():
        return _dialog(request, chat, detail, kind, form, latch=latch, status=422)
    data = form.cleaned_data
    if ACTIONS[kind].danger and not data["sure"]:
        form.add_error("sure", "This destroys work: confirm it.")
        return _dialog(request, chat, detail, kind, form, latch=latch, status=422)
    if data["seen"] != detail.summary.compactions:
        _audit_refused(request, chat, kind, "refused: stale page")
        return _dialog(request, chat, detail, kind, PressForm(), latch=latch, status=409,
                       trouble="A compaction ended since this dialog was opened. "
                       "This is the present state: look again.")  # fmt: skip
    return _queue(request, chat, detail, kind, data)


def _queue(
    request: PageRequest, chat: ChatRow, detail: ChatDetail, kind: str, data: dict[str, Any]
) -> HttpResponse:
    try:
        command = writes.command_request(
            chat_id=chat.id,
            kind=kind,
            args=_args(kind, data),
            reason=data["reason"],
            idempotency_key=data["idempotency_key"],
            by=request.user,
            expected_compaction=data["seen"],
            ip=address_of(request),
            request_id=request_id_of(request),
        )
    except writes.OpenCommand as first:
        return _receipt(request, chat, first.command, status=409,
                        trouble="Somebody was first. This is what is under way:")  # fmt: skip
    except writes.Refused as refusal:
        return _dialog(request, chat, detail, kind, PressForm(), latch=data["latch"],
                       status=422, trouble=refusal.detail)  # fmt: skip
    if not request.htmx:
        return redirect("chat", chat.id)
    return _receipt(request, chat, command)


def _args(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    args: dict[str, Any] = {}
    if kind == "clear_latch":
        args["latch"] = data["latch"]
    if kind == "restore_backup":
        args["command"] = data["command"]
    if data["then"]:
        args["then"] = "compact" if kind == "clear_latch" else "continue"
    return args


def _dialog(
    request: PageRequest,
    chat: ChatRow,
    detail: ChatDetail,
    kind: str,
    form: PressForm,
    *,
    latch: str = "",
    status: int = 200,
    trouble: str = "",
) -> HttpResponse:
    open_command = queries.command_open(chat.id)
    busy = f"{open_command.kind} by {open_command.by} is under way." if open_command else ""
    chosen = _latch(detail, latch)
    context = {
        "nav": "chats",
        "now": now_ms(),
        "chat": chat,
        "detail": detail,
        "summary": detail.summary,
        "title": detail.summary.title or chat.external_id,
        "preview": preview_of(kind, chat, detail, queries.chat_history_mirror(chat.id),
                              latch=chosen),
        "obstacle": obstacle_to(kind, detail, busy=busy),
        "first": receipt_of(open_command) if open_command else None,
        "form": form,
        "key": secrets.token_urlsafe(24),
        "suggested": form["reason"].value() or _suggested(detail),
        "latch": chosen.latch if chosen else latch,
        "latches": open_latches(detail.latches),
        "command": request.GET.get("command", "") or form["command"].value() or "",
        "trouble": trouble,
    }  # fmt: skip
    template = "web/inc/action.html" if request.htmx else "web/action.html"
    return render(request, template, context, status=status)


def _latch(detail: ChatDetail, wanted: str) -> LatchView | None:
    standing = open_latches(detail.latches)
    return next((latch for latch in standing if latch.latch == wanted), None)


def _suggested(detail: ChatDetail) -> str:
    """The worst finding, to be changed or taken as it is."""
    order = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
    worst = sorted(detail.findings, key=lambda finding: order[finding.severity])
    return worst[0].title if worst else ""


def _receipt(
    request: PageRequest,
    chat: ChatRow,
    command: CommandRow,
    *,
    status: int = 200,
    trouble: str = "",
) -> HttpResponse:
    context = {**_receipt_context(request, command, chat), "trouble": trouble,
               "title": chat.summary.title or chat.external_id}  # fmt: skip
    template = "web/inc/pressed.html" if request.htmx else "web/pressed.html"
    return render(request, template, context, status=status)


def _receipt_context(
    request: PageRequest, command: CommandRow, chat: ChatRow | None
) -> dict[str, Any]:
    """The receipt with what followed it: the continued turn, and Undo while it is possible."""
    receipts = (
        receipts_of(
            queries.chat_commands(chat.id, limit=20),
            queries.chat_attempts(chat.id),
            reachable=reachable(chat.summary),
        )
        if chat
        else []
    )
    own = next((r for r in receipts if r.command.id == command.id), receipt_of(command))
    return {
        "nav": "chats",
        "now": now_ms(),
        "operate": may_operate(request),
        "chat": chat,
        "receipt": own,
        "follow": _follow_of(command, receipts),
        "poll": True,
    }


def _follow_of(command: CommandRow, receipts: list[Receipt]) -> Receipt | None:
    """The turn that was to be continued after it."""
    if command.args.get("then") != "continue" or command.ended_at is None:
        return None
    later = [r for r in receipts if r.command.kind == "continue"
             and r.command.created_at >= command.ended_at]  # fmt: skip
    return later[-1] if later else None


def _audit_refused(request: PageRequest, chat: ChatRow, kind: str, why: str) -> None:
    writes.audit(
        action=f"command.{kind}",
        result=why if why.startswith("refused") else "refused: no_right",
        by=request.user,
        target=chat.external_id,
        chat=chat.id,
        reason=str(request.POST.get("reason", ""))[:500],
        ip=address_of(request),
        request_id=request_id_of(request),
    )


@require_safe
@member
def command(request: PageRequest, command_id: str) -> HttpResponse:
    """The receipt by itself; it asks again each second until it is final."""
    row = queries.command_get(command_id)
    if row is None:
        raise Http404
    chat = queries.chat_get(row.chat) if row.chat is not None else None
    template = "web/regions/receipt.html" if request.htmx else "web/command.html"
    return render(request, template, _receipt_context(request, row, chat))


@require_POST
@member
def command_cancel(request: PageRequest, command_id: str) -> HttpResponse:
    try:
        row = writes.command_cancel(command_id=command_id, by=request.user, ip=address_of(request))
    except writes.Refused as refusal:
        return refuse(request, refusal.detail, 403 if refusal.reason == "no_right" else 400)
    if not request.htmx and row.chat is not None:
        return redirect("chat", row.chat)
    return HttpResponse(status=204)
