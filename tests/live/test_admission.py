"""Which Origin headers may open the browsers' socket."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pytest_django import Settings

from ctxhealth.live.admission import ExactOrigin, parse_origin, refusal


def scope(*headers: tuple[bytes, bytes], scheme: str = "ws") -> dict[str, Any]:
    return {"type": "websocket", "path": "/ws/ui/v1/", "scheme": scheme, "headers": list(headers)}


HOST = (b"host", b"127.0.0.1:8000")


@pytest.fixture(autouse=True)
def _hosts(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1", "ctx.example"]
    settings.CTXHEALTH_ORIGINS = ["https://ops.example:8443"]


def test_a_page_of_the_same_host_and_port_is_let_in() -> None:
    assert refusal(scope(HOST, (b"origin", b"http://127.0.0.1:8000"))) is None


def test_a_default_port_is_the_same_port() -> None:
    assert refusal(scope((b"host", b"ctx.example"), (b"origin", b"http://ctx.example:80"))) is None


def test_a_trusted_origin_is_let_in_whatever_the_host() -> None:
    assert refusal(scope(HOST, (b"origin", b"https://ops.example:8443"))) is None


@pytest.mark.parametrize(
    "origin",
    [
        b"http://evil.example",
        b"http://127.0.0.1:8001",
        b"https://127.0.0.1:8000",
        b"http://127.0.0.1",
        b"https://ops.example",
        b"https://sub.ops.example:8443",
        b"null",
        b"",
        b"http://[::1",
        b"http://127.0.0.1:99999999",
        b"http://127.0.0.1:8000/",
        b"http://user@127.0.0.1:8000",
        b"http://127.0.0.1:8000?x",
        b"\xff\xfe",
        b"file://127.0.0.1:8000",
    ],
)
def test_any_other_origin_is_refused(origin: bytes) -> None:
    assert refusal(scope(HOST, (b"origin", origin)))


def test_no_origin_and_two_origins_are_refused() -> None:
    own = (b"origin", b"http://127.0.0.1:8000")
    assert refusal(scope(HOST))
    assert refusal(scope(HOST, own, own))


def test_a_host_that_is_not_allowed_makes_no_origin_its_own() -> None:
    rebound = scope((b"host", b"evil.example"), (b"origin", b"http://evil.example"))
    assert refusal(rebound)


def test_a_wildcard_in_the_settings_opens_nothing(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    settings.CTXHEALTH_ORIGINS = ["https://*.example", "*"]
    assert refusal(scope((b"host", b"a.example"), (b"origin", b"https://a.example"), scheme="wss"))
    assert refusal(scope((b"host", b"a.example"), (b"origin", b"https://*.example"), scheme="wss"))


def test_a_refusal_closes_before_accepting_and_never_reaches_the_application() -> None:
    async def app(*_: Any) -> None:
        raise AssertionError("reached")

    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(ExactOrigin(app)(scope(HOST, (b"origin", b"http://x.example")), receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_an_ipv6_origin_is_an_origin() -> None:
    assert parse_origin("http://[::1]:8000") == ("http", "::1", 8000)
