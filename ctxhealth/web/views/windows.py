"""Windows: the model table, and what operators say above it."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from ctxhealth.store import judging, model_table, queries, writes
from ctxhealth.store.projects import default_project
from ctxhealth.web.access import PageRequest, admin, member, refuse
from ctxhealth.web.forms import OverrideForm, TableForm
from ctxhealth.web.settings_frame import add_error, settings_page

MOST_BYTES = 20_000_000


@require_http_methods(["GET", "HEAD", "POST"])
@member
def windows(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, OverrideForm(initial=request.GET.dict()))
    if request.role != "admin":
        return refuse(request, "Only admins configure.")
    form = OverrideForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        try:
            writes.window_override_set(
                model=data["model"],
                window=data["window"],
                max_input=data["max_input"],
                provider=data["provider"],
                agent=data["agent"] or None,
                note=data["note"],
                by=request.user,
            )
        except ValueError as error:
            add_error(form, error)
        else:
            return redirect("windows")
    return _page(request, form, status=422)


@require_POST
@admin
def window_end(request: PageRequest, override_id: int) -> HttpResponse:
    writes.window_override_end(override_id=override_id, by=request.user)
    return redirect("windows")


@require_POST
@admin
def table_put(request: PageRequest) -> HttpResponse:
    """A newer table from its sources' files, in use at once."""
    form = TableForm(request.POST, request.FILES)
    files = request.FILES.getlist("files")
    try:
        if not files:
            raise ValueError("files: choose one or more")
        if sum(file.size or 0 for file in files) > MOST_BYTES:
            raise ValueError(f"files: at most {MOST_BYTES // 1_000_000} MB together")
        texts = [(file.name or "file", file.read().decode("utf-8")) for file in files]
        rows = model_table.read_texts(texts)
        change = model_table.difference(judging.table().models, rows)
        writes.model_table_put(text=model_table.table_text(rows), by=request.user)
    except UnicodeDecodeError:
        form.add_error(None, "files: not text in UTF-8")
    except ValueError as error:
        form.add_error(None, str(error)[:300])
    else:
        return _page(request, OverrideForm(), change=change)
    return _page(request, OverrideForm(), table_form=form, status=422)


def _page(
    request: PageRequest,
    form: OverrideForm,
    *,
    table_form: TableForm | None = None,
    change: model_table.Change | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": form,
        "overrides": queries.window_overrides(),
        "judging": queries.judging_status(project=default_project().pk),
        "models": len(judging.table().models),
        "own_table": judging.table_path().exists(),
        "table_form": table_form or TableForm(),
        "change": change,
    }
    return settings_page(request, "windows", context, status)
