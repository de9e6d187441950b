"""Events by plain HTTP, for those who cannot hold a socket. Standard library only."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from .bodies import encoded

_PATH = "/api/v1/events"
_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}


class PostFailed(Exception):
    """``status`` is the HTTP status or None where there was no answer.

    ``retry_s``: seconds the server asks for, or None. With 4xx other than 429 the same request
    will fail again.
    """

    def __init__(self, status: int | None, detail: str, retry_s: float | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.retry_s = status, detail, retry_s


def post_events(
    url: str,
    token: str,
    agent: str,
    epoch: str,
    first_seq: int,
    events: Iterable[Mapping[str, Any]],
    timeout: float = 30.0,
) -> dict[str, Any]:
    """Send events numbered ``first_seq``, ``first_seq`` + 1, ...; blocks. Returns the answer.

    Each event holds type, ts and its fields, without seq; secrets are redacted here. Sending the
    same again is safe: what is stored already counts as success. The answer names what is acked
    and what is rejected. Raises PostFailed.
    """
    lines = [encoded({"seq": seq, **event}) for seq, event in enumerate(events, first_seq)]
    request = urllib.request.Request(
        _address(url),
        data=b"\n".join(lines) + b"\n",
        method="POST",
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/x-ndjson",
            "Ctxhealth-Agent": agent,
            "Ctxhealth-Epoch": epoch,
            "Ctxhealth-First-Seq": str(first_seq),
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return _object(answer.read())
    except urllib.error.HTTPError as error:
        raise PostFailed(error.code, _detail(error), _retry_s(error)) from error
    except (OSError, ValueError) as error:
        raise PostFailed(None, f"no answer from {url}: {error}") from error


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise PostFailed(None, f"url: {url!r} is not http(s)://host[:port]")
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, _PATH, "", ""))


def _object(raw: bytes) -> dict[str, Any]:
    answer = json.loads(raw or b"{}")
    return answer if isinstance(answer, dict) else {"answer": answer}


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        text = error.read(4_096).decode("utf-8", "replace")
    except OSError:
        text = ""
    return f"HTTP {error.code}: {text or error.reason}"


def _retry_s(error: urllib.error.HTTPError) -> float | None:
    try:
        return float(error.headers.get("Retry-After") or "")
    except ValueError:
        return None
