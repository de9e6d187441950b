"""A body that is too large ends before it fills the disk, whoever sends it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.backends.signed_cookies import SessionStore
from pytest_django import Settings

from ctxhealth.web.body_limit import BodyLimit, most_of

Sent = list[dict[str, Any]]


async def whole(scope: Any, receive: Any, send: Any) -> None:
    """An application that reads all of it, as Django does, and gives up when the client leaves."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def request(
    path: str,
    *pieces: bytes,
    length: int | None = None,
    headers: list[tuple[bytes, bytes]] | None = None,
) -> Sent:
    sent: Sent = []
    waiting = [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces) - 1}
        for number, piece in enumerate(pieces)
    ]

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    given = [*(headers or [])]
    if length is not None:
        given.append((b"content-length", str(length).encode()))
    asyncio.run(BodyLimit(whole)({"path": path, "headers": given}, receive, send))
    return sent


def test_a_body_within_the_limit_passes() -> None:
    assert request("/login/", b"abc", b"de")[1]["body"] == b"5"


def test_a_body_that_says_it_is_too_large_is_not_even_read() -> None:
    sent = request("/login/", length=most_of("/login/") + 1)
    assert sent[0]["status"] == 413
    assert b"At most 2 MB" in sent[1]["body"]


def test_a_body_that_turns_out_to_be_too_large_ends_there() -> None:
    piece = b"x" * 600_000
    sent = request("/login/", *[piece] * 9)
    assert [message.get("status") for message in sent] == [413, None]


def test_only_the_import_page_takes_large_bodies(settings: Settings) -> None:
    settings.CTXHEALTH_IMPORT_MB = 100
    assert most_of("/import/") == 201_000_000
    for path in ("/import", "/import/list/", "/", "/api/v1/events", "/chats/1/"):
        assert most_of(path) < 3_000_000, path


@pytest.mark.parametrize("length", ["", "abc", "-1", "9" * 40])
def test_a_length_that_makes_no_sense_is_counted_instead(length: str) -> None:
    sent: Sent = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"ok", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"path": "/", "headers": [(b"content-length", length.encode())]}
    asyncio.run(BodyLimit(whole)(scope, receive, send))
    assert sent[0]["status"] == (413 if length.isdigit() else 200)


def cookies(session: str) -> list[tuple[bytes, bytes]]:
    return [(b"cookie", f"{settings.SESSION_COOKIE_NAME}={session}".encode())]


def signed(**content: str) -> str:
    store = SessionStore()
    store.update(content)
    store.save()
    return str(store.session_key)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 413),
        (cookies("made-up:by:hand"), 413),
        (cookies(signed()), 413),
        (cookies(signed(_auth_user_id="1")), 200),
        (cookies(signed(_auth_user_id="1")[:-2]), 413),
    ],
)
def test_a_large_file_is_taken_only_with_a_session_that_this_server_signed(
    headers: list[tuple[bytes, bytes]], status: int
) -> None:
    sent = request("/import/", *[b"x" * 600_000] * 9, headers=headers)
    assert sent[0]["status"] == status
