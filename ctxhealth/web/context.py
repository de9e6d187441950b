"""What every page's frame needs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from ctxhealth.store import queries


def frame(request: HttpRequest) -> dict[str, Any]:
    return {
        "role": getattr(request, "role", None),
        "read_only": settings.CTXHEALTH_READ_ONLY,
        # Called by the template, so that only pages that show it ask.
        "open_incidents": queries.incidents_open_count,
    }
