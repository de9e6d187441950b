"""Secrets out of events before the insert: the log is append only, later is too late.

Identifiers stay as they are, or two things would become one. Everything else that is text goes
through the same rules as in the agent's own process.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

from ctxhealth.client.redact import redact, suspicious
from ctxhealth.wire import Event, decode_stored

E = TypeVar("E")

IDENTIFIERS = frozenset(
    {
        "id", "in", "chat", "type", "request", "attempt", "turn", "topic", "latch", "command",
        "calls", "answers", "removed", "revision", "parent", "hash", "input_hash", "key", "sha256",
    }
)  # fmt: skip


def redacted(event: E, body: bytes) -> tuple[E, bytes]:
    """The event and its body without secrets; the same objects where there were none."""
    if not suspicious(body.decode()):
        return event, body
    value = msgspec.json.decode(body)
    cleaned = _redact(value)
    if cleaned == value:
        return event, body
    new_body = msgspec.json.encode(cleaned)
    try:
        return cast(E, _decode(new_body)), new_body
    except msgspec.ValidationError:
        # A marker may be longer than the secret and push a text over its limit.
        new_body = msgspec.json.encode(_clipped(cleaned, value))
        return cast(E, _decode(new_body)), new_body


def redact_text(text: str) -> str:
    """One text without secrets."""
    return redact(text) if suspicious(text) else text


def _decode(body: bytes) -> Event:
    return decode_stored(body)


def _redact(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redact(entry) for entry in value]
    if isinstance(value, dict):
        return {
            key: entry if key in IDENTIFIERS else _redact(entry) for key, entry in value.items()
        }
    return value


def _clipped(value: Any, original: Any) -> Any:
    """``value`` with every text cut to the length that the original one had."""
    if isinstance(value, str):
        return value[: len(original)]
    if isinstance(value, list):
        return [_clipped(entry, old) for entry, old in zip(value, original, strict=True)]
    if isinstance(value, dict):
        return {key: _clipped(entry, original[key]) for key, entry in value.items()}
    return value
