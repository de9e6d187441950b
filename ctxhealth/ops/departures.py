"""Somebody who signs out is out everywhere: their open pages are cut, not only their cookie.

A signed cookie stays valid until it expires, so the sockets that were opened with it must end.
Django's own signal is the one place that every way of signing out passes through, and pages may
not import the live room.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_out
from django.dispatch import receiver

from ctxhealth.live import hints


@receiver(user_logged_out, dispatch_uid="ctxhealth.cut_sockets")
def cut_sockets(sender: Any, user: Any, **kwargs: Any) -> None:
    if user is not None:
        hints.cut(user.pk)
