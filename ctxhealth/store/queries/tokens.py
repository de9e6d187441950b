"""Agent tokens: the list, and the check of a bearer."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from ctxhealth.store.models import AgentToken

PREFIX = "ctxh"
# Compared against where no such token exists, so that a miss takes as long as a hit.
_NO_DIGEST = "0" * 64


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRow:
    """A token without its secret, which nobody has any more."""

    id: int
    project: int
    name: str
    key_id: str
    scopes: frozenset[str]
    agent_name: str | None
    created_at: int
    created_by: str
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None

    def usable(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def tokens_list() -> list[TokenRow]:
    """All tokens, newest first."""
    return [
        _row(token) for token in AgentToken.objects.select_related("created_by").order_by("-id")
    ]


def tokens_usable(ids: Iterable[int], now: int) -> set[int]:
    """Those of these tokens that are neither revoked nor expired."""
    tokens = AgentToken.objects.filter(id__in=list(ids), revoked_at=None)
    live = tokens.filter(Q(expires_at=None) | Q(expires_at__gt=now))
    return set(live.values_list("id", flat=True))


def token_check(bearer: str, now: int) -> TokenRow | None:
    """The usable token that this bearer string is, or None; says nothing about why not."""
    prefix, _, rest = bearer.partition("_")
    key_id, _, secret = rest.partition("_")
    if prefix != PREFIX or not key_id or not secret or len(bearer) > 200:
        key_id, secret = "", ""
    token = AgentToken.objects.filter(key_id=key_id).first() if key_id else None
    digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
    same = hmac.compare_digest(digest, token.digest if token else _NO_DIGEST)
    if token is None or not same:
        return None
    row = _row(token)
    return row if row.usable(now) else None


def _row(token: AgentToken) -> TokenRow:
    return TokenRow(
        id=token.pk,
        project=token.project_id,
        name=token.name,
        key_id=token.key_id,
        scopes=token.scope_set,
        agent_name=token.agent_name,
        created_at=token.created_at,
        created_by=token.created_by.get_username() if token.created_by else "",
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
        last_used_at=token.last_used_at,
    )
