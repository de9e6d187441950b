"""Secrets out of events before the insert: the log is append only, later is too late.

Identifiers stay as they are, or two things would become one. Everything else that is text goes
through the same rules as in the agent's own process.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

from ctxhealth.client.redact import redact, suspicious
from ctxhealth.wire import Event, decode_stored
from ctxhealth.wire import events as wire

E = TypeVar("E")

IDENTIFIERS = frozenset(
    {
        "id", "in", "chat", "type", "request", "attempt", "turn", "topic", "latch", "command",
        "calls", "answers", "removed", "revision", "parent", "hash", "input_hash", "key", "sha256",
    }
)  # fmt: skip


# Free text of the frequent types. Their other fields are numbers, identifiers and names of models
# and tools; types that are not here are looked through as a whole.
_TEXTS: dict[type, tuple[str, ...]] = {
    wire.MessageAdded: ("text", "excerpt", "name"),
    wire.RequestSent: (),
    wire.ModelReplied: (),
    wire.TurnStarted: (),
    wire.TurnEnded: ("error",),
    wire.UsageUpdate: (),
}


def redacted(event: E, body: bytes, plain: bool = False) -> tuple[E, bytes]:
    """The event and its body without secrets; the same objects where there were none.

    ``plain``: the body holds what the event's Struct knows and nothing else.
    """
    if not (secrets_in(event) if plain else suspicious(body.decode())):
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


def secrets_in(event: object) -> bool:
    """Whether anything in an event looks like a secret, where its Struct is all that there is."""
    fields = _TEXTS.get(type(event))
    if fields is None:
        return suspicious(msgspec.json.encode(event).decode())
    for name in fields:
        text = getattr(event, name)
        if text is not None and suspicious(text):
            return True
    return False


def redact_text(text: str) -> str:
    """One text without secrets."""
    return redact(text)


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
