"""Who calls the API, and what they may: a token's scopes or a signed-in person's role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer

from ctxhealth.store import people, queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.web.api.errors import ApiError


@dataclass(frozen=True)
class Caller:
    """``name`` goes into the audit trail; ``user`` is None for a token."""

    name: str
    may_read: bool
    may_operate: bool
    user: Any = None


class Bearer(HttpBearer):
    """``Authorization: Bearer``, with the scopes ``read`` or ``operate`` (which includes read)."""

    def __call__(self, request: HttpRequest) -> Caller | None:
        return super().__call__(request)

    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        now = now_ms()
        found = queries.token_check(token, now)
        if found is None:
            raise ApiError(401, "This token is unknown, expired or revoked.", field="Authorization")
        writes.token_seen(token_id=found.id, last_used_at=found.last_used_at, now=now)
        operate = "operate" in found.scopes
        return Caller(f"token {found.name}", operate or "read" in found.scopes, operate)


class Session(APIKeyCookie):
    """The operator's own session; anything but reading needs the CSRF token (header or form)."""

    param_name: str = settings.SESSION_COOKIE_NAME

    def authenticate(self, request: HttpRequest, key: str | None) -> Caller | None:
        user = request.user
        if not user.is_authenticated:
            return None
        return Caller(
            name=user.get_username(),
            may_read=people.role_of(user) is not None,
            may_operate=people.can_operate(user),
            user=user,
        )


def reader(request: HttpRequest) -> Caller:
    """The caller, who may read; 403 otherwise."""
    caller = caller_of(request)
    if not caller.may_read:
        raise ApiError(403, "This needs the scope read, or a role.", field="Authorization")
    return caller


def caller_of(request: HttpRequest) -> Caller:
    """Who calls, whatever they may: refusals of presses are the store's, which audits them."""
    caller: Caller = getattr(request, "auth")  # noqa: B009  Set by the authentication.
    return caller
