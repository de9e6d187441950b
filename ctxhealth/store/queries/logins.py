"""Failed logins, which the login page brakes on."""

from __future__ import annotations

from ctxhealth.store.models import AuditEntry


def login_failures(
    *, since: int, username: str | None = None, address: str | None = None, limit: int = 100
) -> list[int]:
    """Times of the wrong passwords since then, newest first, for an account or an address."""
    rows = AuditEntry.objects.filter(
        at__gte=since, action="login", result="refused: wrong name or password"
    )
    if username is not None:
        rows = rows.filter(by_name=username[:200])
    if address is not None:
        rows = rows.filter(ip=address)
    return list(rows.order_by("-at").values_list("at", flat=True)[:limit])
