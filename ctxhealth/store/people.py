"""Roles of people: what a signed-in user may do."""

from __future__ import annotations

from typing import Any, Literal

Role = Literal["viewer", "operator", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "operator", "admin")


def role_of(user: Any) -> Role | None:
    """The strongest role of an active, signed-in user; superusers are admins."""
    if user is None or not user.is_authenticated or not user.is_active:
        return None
    if user.is_superuser:
        return "admin"
    names = set(user.groups.values_list("name", flat=True))
    held = [role for role in ROLES if role in names]
    return held[-1] if held else None


def can_view(user: Any) -> bool:
    return role_of(user) is not None


def can_operate(user: Any) -> bool:
    return role_of(user) in ("operator", "admin")


def can_admin(user: Any) -> bool:
    return role_of(user) == "admin"
