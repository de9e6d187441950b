"""Events by plain HTTP, for those who cannot hold a socket. Standard library only."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from .bodies import encoded
from .limits import INFLIGHT_BYTES, INFLIGHT_EVENTS

_PATH = "/api/v1/events"
_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}


class PostFailed(Exception):
    """``status`` is the HTTP status, or None where there was no answer.

    ``retry_s``: seconds the server asks for, or None. ``answer``: its JSON, where it sent any
    (409 names ``resend_from``). With 4xx other than 409 and 429 the same will fail again.
    """

    def __init__(
        self,
        status: int | None,
        detail: str,
        retry_s: float | None = None,
        answer: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.retry_s = status, detail, retry_s
        self.answer = dict(answer or {})


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
    same again is safe: what is stored already counts as success. Many events go in several
    requests, one after the other, of at most 1,000 events and 1 MiB. The answer: ``epoch``,
    ``acked`` and ``results`` [{seq, status, code?, path?, detail?}]. Raises PostFailed.
    """
    address = _address(url)
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/x-ndjson",
        "Ctxhealth-Agent": agent,
        "Ctxhealth-Epoch": epoch,
    }
    lines = [encoded({"seq": seq, **event}) for seq, event in enumerate(events, first_seq)]
    whole: dict[str, Any] = {"results": []}
    for first, batch in _batches(lines, first_seq):
        headers["Ctxhealth-First-Seq"] = str(first)
        request = urllib.request.Request(address, b"".join(batch), headers, method="POST")
        answer = _send(request, timeout)
        whole = {**answer, "results": whole["results"] + list(answer.get("results") or ())}
    return whole


def _batches(lines: list[bytes], first_seq: int) -> Iterator[tuple[int, list[bytes]]]:
    batch: list[bytes] = []
    size = 0
    for seq, line in enumerate(lines, first_seq):
        if batch and (len(batch) >= INFLIGHT_EVENTS or size + len(line) + 1 > INFLIGHT_BYTES):
            yield seq - len(batch), batch
            batch, size = [], 0
        batch.append(line + b"\n")
        size += len(line) + 1
    if batch:
        yield first_seq + len(lines) - len(batch), batch


def _send(request: urllib.request.Request, timeout: float) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return _object(answer.read())
    except urllib.error.HTTPError as error:
        raise _failure(error) from error
    except (OSError, ValueError) as error:
        raise PostFailed(None, f"no answer from {request.host}: {error}") from error


def _failure(error: urllib.error.HTTPError) -> PostFailed:
    try:
        raw = error.read(65_536)
    except OSError:
        raw = b""
    try:
        answer = _object(raw)
    except ValueError:
        answer = {}
    text = raw[:1_000].decode("utf-8", "replace") or str(error.reason)
    return PostFailed(error.code, f"HTTP {error.code}: {text}", _retry_s(error), answer)


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise PostFailed(None, f"url: {url!r} is not http(s)://host[:port]")
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, _PATH, "", ""))


def _object(raw: bytes) -> dict[str, Any]:
    answer = json.loads(raw or b"{}")
    return answer if isinstance(answer, dict) else {"answer": answer}


def _retry_s(error: urllib.error.HTTPError) -> float | None:
    try:
        return float(error.headers.get("Retry-After") or "")
    except ValueError:
        return None
