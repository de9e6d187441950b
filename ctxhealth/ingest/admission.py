"""Who may open an agent's socket: no browser, and only with a usable token."""

from __future__ import annotations

from typing import Any

BEARER = "bearer "


def header(scope: Any, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def browser_refusal(scope: Any) -> str | None:
    """Why a handshake looks like a browser's, or None.

    A browser sends Origin and Cookie by itself, so a page of anybody's could otherwise speak
    with the rights of whoever looks at it.
    """
    for name in (b"origin", b"cookie"):
        if header(scope, name):
            return f"a {name.decode()} header"
    return None


def bearer_of(scope: Any) -> str:
    """The bearer string of exactly one Authorization header, or empty."""
    given = header(scope, b"authorization")
    if len(given) != 1:
        return ""
    text = given[0].decode("latin-1").strip()
    return text[len(BEARER) :].strip() if text[: len(BEARER)].lower() == BEARER else ""
