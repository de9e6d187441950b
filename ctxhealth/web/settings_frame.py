"""What the settings pages share: their tabs, and how a form is shown again with its trouble."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render

from ctxhealth.store.clock import now_ms
from ctxhealth.web.access import PageRequest

# (name of the address, label, whether only admins may look)
TABS = (
    ("tokens", "Tokens", True),
    ("people", "People", True),
    ("thresholds", "Thresholds", False),
    ("windows", "Windows", False),
    ("retention", "Retention", True),
    ("about", "This server", False),
)


def settings_page(
    request: PageRequest, tab: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """One tab as a page."""
    is_admin = request.role == "admin"
    tabs = [(name, label) for name, label, closed in TABS if is_admin or not closed]
    shared = {
        "nav": "settings",
        "tab": tab,
        "tabs": tabs,
        "now": now_ms(),
        "is_admin": is_admin,
        "origin": f"{request.scheme}://{request.get_host()}",
    }
    return render(request, f"web/settings/{tab}.html", {**shared, **context}, status=status)


def add_error(form: forms.Form, error: ValueError) -> None:
    """A refusal of the store as the form's own: ``field: reason`` goes to that field."""
    field, _, reason = str(error).partition(": ")
    if reason and field in form.fields:
        form.add_error(field, reason[:1].upper() + reason[1:])
    else:
        form.add_error(None, str(error))
