"""What every page's frame needs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def frame(request: HttpRequest) -> dict[str, Any]:
    return {
        "role": getattr(request, "role", None),
        "read_only": settings.CTXHEALTH_READ_ONLY,
    }
