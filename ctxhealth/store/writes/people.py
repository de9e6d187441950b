"""Accounts, roles and one-time logins."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db.models import Q

from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import LoginLink
from ctxhealth.store.people import ROLES, Role
from ctxhealth.store.through import call
from ctxhealth.store.writes.audit import audit

LOGIN_MINUTES = 60


def user_ensure(*, username: str, role: Role) -> Any:
    """The user of that name with that role, made without a password where there was none."""
    return call(_user_ensure, username, role)


def user_set_role(*, user: Any, role: Role | None, by: Any = None) -> None:
    """Give exactly this role, or none."""
    call(_user_set_role, user, role, by)


def user_give(*, username: str, role: Role, by: Any = None) -> Any:
    """The user of that name with exactly that role, made or enabled where need be.

    Raises ValueError naming the field and the reason.
    """
    return call(_user_give, _name(username), role, by)


def user_disable(*, username: str, by: Any = None) -> bool:
    """Refuse this person from now on, in open sessions too; False where there is no such one.

    Raises ValueError where it is the last admin.
    """
    return call(_user_disable, username, by)


def login_link_create(*, user: Any, minutes: int = LOGIN_MINUTES) -> str:
    """The path of a login that works once; only its hash is kept."""
    return call(_login_link_create, user, minutes)


def login_link_use(*, token: str, ip: str = "") -> Any | None:
    """The user whose link this is, once; None where it is unknown, used or too old."""
    return call(_login_link_use, token, ip)


def _user_ensure(username: str, role: Role) -> Any:
    model = get_user_model()
    user = model.objects.filter(username=username).first()
    if user is None:
        user = model.objects.create_user(username=username)
    user.groups.add(_group(role))
    return user


def _name(username: str) -> str:
    try:
        # Django's own rule for names: its length and its characters.
        get_user_model()(username=username).clean_fields(exclude=["password"])
        return username
    except ValidationError as error:
        raise ValueError(f"name: {' '.join(error.messages).rstrip('.')}") from error


def _user_give(username: str, role: Role, by: Any) -> Any:
    user = _user_ensure(username, role)
    if not user.is_active:
        user.is_active = True
        user.save(update_fields=["is_active"])
    _user_set_role(user, role, by)
    return user


def _user_disable(username: str, by: Any) -> bool:
    _keep_an_admin(username, "disabled")
    changed = get_user_model().objects.filter(username=username).update(is_active=False)
    if changed:
        audit(action="user.disable", result="done", by=by, target=username)
    return bool(changed)


def _keep_an_admin(username: str, what: str) -> None:
    """Nobody could configure any more, nor undo it. Raises ValueError."""
    model = get_user_model()
    admins = model.objects.filter(is_active=True).filter(
        Q(is_superuser=True) | Q(groups__name="admin")
    )
    names = set(admins.values_list("username", flat=True))
    if names == {username}:
        raise ValueError(f"name: the last admin, {username}, cannot be {what}")


def _user_set_role(user: Any, role: Role | None, by: Any) -> None:
    if role != "admin":
        _keep_an_admin(user.get_username(), "given another role")
    user.groups.remove(*Group.objects.filter(name__in=ROLES))
    if role is not None:
        user.groups.add(_group(role))
    audit(action="user.role", result=role or "none", by=by, target=user.get_username())


def _group(role: Role) -> Group:
    return Group.objects.get_or_create(name=role)[0]


def _login_link_create(user: Any, minutes: int) -> str:
    secret, now = secrets.token_urlsafe(32), now_ms()
    LoginLink.objects.create(
        user=user, digest=_digest(secret), created_at=now, expires_at=now + minutes * 60_000
    )
    return f"/login/once/{secret}/"


def _login_link_use(token: str, ip: str) -> Any | None:
    now = now_ms()
    links = LoginLink.objects.filter(digest=_digest(token), used_at=None, expires_at__gt=now)
    # Claimed by the update itself, so that two requests at once cannot both use it.
    if not links.filter(user__is_active=True).exists() or not links.update(used_at=now):
        audit(action="login.link", result="refused", ip=ip)
        return None
    user = LoginLink.objects.select_related("user").get(digest=_digest(token)).user
    audit(action="login.link", result="done", by=user, ip=ip)
    return user


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
