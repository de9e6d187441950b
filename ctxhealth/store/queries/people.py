"""Who may sign in, with which role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model

from ctxhealth.store.people import Role, role_of


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonRow:
    """``role`` None: may sign in and see nothing. Times are server ms."""

    id: int
    name: str
    role: Role | None
    active: bool
    joined_at: int
    seen_at: int | None
    user: Any


def people_list() -> list[PersonRow]:
    """Everybody, the active ones first, by name."""
    users = get_user_model().objects.prefetch_related("groups")
    return [_row(user) for user in users.order_by("-is_active", "username")]


def person_get(*, user_id: int | None = None, username: str | None = None) -> PersonRow | None:
    """By id, or by exact name."""
    wanted = {"pk": user_id} if user_id is not None else {"username": username}
    user = get_user_model().objects.filter(**wanted).first()
    return None if user is None else _row(user)


def _row(user: Any) -> PersonRow:
    seen = user.last_login
    return PersonRow(
        id=user.pk,
        name=user.get_username(),
        role=_role(user),
        active=user.is_active,
        joined_at=int(user.date_joined.timestamp() * 1_000),
        seen_at=int(seen.timestamp() * 1_000) if seen else None,
        user=user,
    )


def _role(user: Any) -> Role | None:
    """Also of somebody who is disabled: what they would have again."""
    if user.is_superuser:
        return "admin"
    if user.is_active:
        return role_of(user)
    names = {group.name for group in user.groups.all()}
    held: list[Role] = [role for role in ("viewer", "operator", "admin") if role in names]
    return held[-1] if held else None
