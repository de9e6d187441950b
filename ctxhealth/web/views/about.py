"""This server: what it runs on, and whether anybody may act from it."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from ctxhealth import __version__
from ctxhealth.core.state import FOLD_VERSION
from ctxhealth.store import queries
from ctxhealth.web.access import PageRequest, member
from ctxhealth.web.settings_frame import settings_page


@require_safe
@member
def about(request: PageRequest) -> HttpResponse:
    context = {
        "version": __version__,
        "core_version": FOLD_VERSION,
        "database": queries.database_words(),
        "counts": queries.store_counts(),
        "read_only": settings.CTXHEALTH_READ_ONLY,
        "session_hours": settings.SESSION_COOKIE_AGE // 3600,
    }
    return settings_page(request, "about", context)
