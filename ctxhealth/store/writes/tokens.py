"""Agent tokens: made once, shown once, revocable."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import Q

from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import AgentToken
from ctxhealth.store.projects import default_project
from ctxhealth.store.through import call, soon
from ctxhealth.store.writes.audit import audit

SCOPES = frozenset({"ingest", "command", "read", "operate"})
# A token that talks all day would otherwise write a row a frame.
USED_EVERY_MS = 60_000
OVERLAP_HIGH = 30 * 24
HOUR_MS = 3_600_000


class TokenSecret(NamedTuple):
    """A new token and its bearer string, which is kept nowhere."""

    token: AgentToken
    secret: str


def token_create(
    *,
    name: str,
    scopes: Iterable[str] = ("ingest", "command"),
    agent_name: str | None = None,
    by: Any = None,
    expires_at: int | None = None,
) -> TokenSecret:
    """Make a token. Raises ValueError naming the field and the reason."""
    wanted = frozenset(scopes)
    if not wanted or wanted - SCOPES:
        raise ValueError(f"scopes: some of {', '.join(sorted(SCOPES))}, not {sorted(wanted)}")
    if not name.strip() or len(name) > 200:
        raise ValueError("name: 1 to 200 characters")
    if agent_name is not None and not 1 <= len(agent_name) <= 200:
        raise ValueError("agent_name: 1 to 200 characters, or none for any agent")
    return call(_token_create, name.strip(), wanted, agent_name, by, expires_at)


def token_rotate(*, token_id: int, hours: int, by: Any = None) -> TokenSecret:
    """A new token of the same rights; the old one works ``hours`` more, or as long as it would
    have. Raises ValueError naming the field and the reason."""
    if not 0 <= hours <= OVERLAP_HIGH:
        raise ValueError(f"hours: 0 to {OVERLAP_HIGH}, not {hours}")
    return call(_token_rotate, token_id, hours, by)


def token_revoke(*, token_id: int, by: Any = None) -> bool:
    """Revoke; a live socket of it is cut. False where it does not exist or already was."""
    return call(_token_revoke, token_id, by)


def token_used(*, token_id: int, now: int) -> None:
    """Note when it was last used, at most once a minute."""
    call(_token_used, token_id, now)


def token_seen(*, token_id: int, last_used_at: int | None, now: int) -> None:
    """The same for a request, which does not wait for it; ``last_used_at`` as it was read."""
    if last_used_at is None or now - last_used_at >= USED_EVERY_MS:
        soon(_token_used, token_id, now)


def _token_create(
    name: str, scopes: frozenset[str], agent_name: str | None, by: Any, expires_at: int | None
) -> TokenSecret:
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    token = AgentToken.objects.create(
        project=default_project(),
        name=name,
        key_id=key_id,
        digest=hashlib.sha256(secret.encode("ascii")).hexdigest(),
        scopes=" ".join(sorted(scopes)),
        agent_name=agent_name,
        created_at=now_ms(),
        created_by=by,
        expires_at=expires_at,
    )
    audit(action="token.create", result="done", by=by, target=f"{name} ({key_id})")
    return TokenSecret(token, f"ctxh_{key_id}_{secret}")


def _token_rotate(token_id: int, hours: int, by: Any) -> TokenSecret:
    now = now_ms()
    old = AgentToken.objects.filter(id=token_id, revoked_at=None).first()
    if old is None or (old.expires_at is not None and old.expires_at <= now):
        raise ValueError("token: it is revoked or expired already; create a new one")
    life = None if old.expires_at is None else now + (old.expires_at - old.created_at)
    made = _token_create(old.name, old.scope_set, old.agent_name, by, life)
    end = now + hours * HOUR_MS
    if hours == 0:
        _token_revoke(token_id, by)
    elif old.expires_at is None or old.expires_at > end:
        AgentToken.objects.filter(id=token_id).update(expires_at=end)
    detail = {"new": made.token.key_id, "overlap_hours": hours}
    target = f"{old.name} ({old.key_id})"
    audit(action="token.rotate", result="done", by=by, target=target, detail=detail)
    return made


def _token_revoke(token_id: int, by: Any) -> bool:
    changed = AgentToken.objects.filter(id=token_id, revoked_at=None).update(
        revoked_at=now_ms(), revoked_by=by
    )
    token = AgentToken.objects.filter(id=token_id).first()
    target = f"{token.name} ({token.key_id})" if token else str(token_id)
    result = "done" if changed else "refused: not a token that was in use"
    audit(action="token.revoke", result=result, by=by, target=target)
    if changed:
        from ctxhealth.store import unit

        work = unit.current()
        if work is not None:
            work.revoked.append(token_id)
    return bool(changed)


def _token_used(token_id: int, now: int) -> None:
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USED_EVERY_MS)
    AgentToken.objects.filter(stale, id=token_id).update(last_used_at=now)
