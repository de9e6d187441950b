"""Who holds a session cookie, by the database of now."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from ctxhealth.store import people
from ctxhealth.store.people import Role


class Identity(NamedTuple):
    """``role`` is None for strangers and for people whose account is disabled or has no role."""

    user_id: int | None
    role: Role | None

    @property
    def may_operate(self) -> bool:
        return self.role in ("operator", "admin") and not settings.CTXHEALTH_READ_ONLY


STRANGER = Identity(None, None)


def identify(cookie: str | None) -> Identity:
    """Queries. Expired cookies, changed passwords and disabled accounts are all strangers."""
    if not cookie:
        return STRANGER
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(cookie)
    user = get_user(request)
    if not user.is_authenticated:
        return STRANGER
    return Identity(user.pk, people.role_of(user))
