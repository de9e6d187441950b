"""Import: bring a session file, get its chat."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.core.exceptions import TooManyFilesSent
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods, require_safe

from ctxhealth.imports.limits import FILES, UNPACKED_TIMES
from ctxhealth.imports.spool import spool
from ctxhealth.imports.worker import poke
from ctxhealth.readers.registry import FORMATS
from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.store.queries import ImportPage
from ctxhealth.web.access import PageRequest, may_operate, member, refuse, why_not_operate
from ctxhealth.web.imports_rows import import_lines, lands_on, line_of
from ctxhealth.web.imports_upload import Brought, SpoolHandler
from ctxhealth.web.origin import address_of

PAGE_ROWS = 50
_NOTHING = "No file was chosen."


# Django reads the whole form to check its token; the handler must be in place before that.
@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
@member
def imports(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request)
    why = why_not_operate(request)
    if why:
        return refuse(request, why)
    handler = SpoolHandler(request, spool(), settings.CTXHEALTH_IMPORT_MB * 1_000_000)
    request.upload_handlers = [handler]
    try:
        return _upload(request, handler)
    except TooManyFilesSent:
        return refuse(request, f"One drop takes {FILES} files.", 400, "Nothing was imported")
    finally:
        handler.forget()


@csrf_protect
def _upload(request: PageRequest, handler: SpoolHandler) -> HttpResponse:
    """Not reached where the form's token is not right; the handler then forgets the files."""
    files: list[Brought] = request.FILES.getlist("files")  # type: ignore[assignment]
    handler.keep()
    return _queued(request, files)


def _queued(request: PageRequest, files: list[Brought]) -> HttpResponse:
    if not files:
        return _page(request, trouble=_NOTHING, status=422)
    drop = secrets.token_hex(8)
    for file in files:
        number = writes.import_queue(
            batch=drop, name=file.name, size=file.size, sha256=file.sha256, spooled=file.spooled,
            refused=writes.Refusal(file.refused) if file.refused else None, by=request.user,
            ip=address_of(request),
        )  # fmt: skip
        row = queries.import_get(number)
        if row is None or not row.open:
            spool().remove(file.spooled)
    poke()
    if request.htmx:
        return render(request, "imports/inc/list.html", _list(request, drop=drop))
    return redirect(f"{reverse('imports')}?drop={drop}")


@require_safe
@member
def import_list(request: PageRequest) -> HttpResponse:
    """The list alone, looked at again while something is read."""
    drop = _drop(request)
    listed = _list(request, drop=drop)
    # 286 ends htmx's looking.
    status = 200 if listed["polls"] else 286
    response = render(request, "imports/inc/list.html", listed, status=status)
    chat = lands_on(queries.imports_page(batch=drop).rows) if drop else None
    if chat is not None and request.htmx:
        response["HX-Redirect"] = reverse("chat", args=[chat])
    return response


@require_safe
@member
def import_detail(request: PageRequest, import_id: int) -> HttpResponse:
    """One file: what came of it and all that could not be read."""
    row = queries.import_get(import_id)
    if row is None:
        raise Http404
    context = {"nav": "imports", "now": now_ms(), "line": line_of(row), "refresh": row.open}
    return render(request, "imports/detail.html", context)


def _page(request: PageRequest, *, trouble: str = "", status: int = 200) -> HttpResponse:
    listed = _list(request, drop=_drop(request))
    context = {
        **listed,
        "nav": "imports",
        "trouble": trouble,
        "operate": may_operate(request),
        "why_not": why_not_operate(request),
        "formats": [known.what for known in FORMATS if known.make is not None],
        "most": settings.CTXHEALTH_IMPORT_MB * 1_000_000,
        "unpacked": UNPACKED_TIMES,
        "files": FILES,
    }
    partial = request.htmx and status != 200
    template = "imports/inc/trouble.html" if partial else "imports/page.html"
    return render(request, template, context, status=status)


def _list(request: PageRequest, *, drop: str) -> dict[str, object]:
    before = request.GET.get("before", "")
    number = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    state = request.GET.get("state", "")[:20]
    page: ImportPage = queries.imports_page(before=number, limit=PAGE_ROWS, state=state)
    return {
        "now": now_ms(),
        "page": page,
        "lines": import_lines(page.rows),
        "drop": drop,
        "state": state,
        "before": number,
        "polls": page.waiting > 0,
    }


def _drop(request: PageRequest) -> str:
    return request.GET.get("drop", "")[:40]
