"""From keyword arguments to the bytes of one event, without its seq.

The body is made in the caller's thread: later changes to the caller's lists change nothing, and
sizes are exact. The outbox puts ``"seq":n`` in front.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from .limits import DEPTH, EVENT_BYTES, EXCERPT_CHARS, ID_CHARS, SENTENCE_CHARS, WORD_CHARS
from .redact import redact_value, suspicious
from .texts import TextPolicy, as_text

# Room for `"seq":9007199254740991,` in front.
BODY_BYTES = EVENT_BYTES - 32
_IDS = frozenset(
    ("chat", "id", "turn", "topic", "request", "attempt", "revision", "latch", "parent")
)
_SENTENCES = ("title", "reason", "error", "detail", "backup")
_WORDS = (
    "model", "provider", "name", "finish", "code", "hash", "input_hash", "key", "reported",
    "tokenizer",
)  # fmt: skip
_BOUNDS = {
    **dict.fromkeys(_SENTENCES, SENTENCE_CHARS),
    **dict.fromkeys(_WORDS, WORD_CHARS),
    "excerpt": EXCERPT_CHARS,
}
_BULKY = ("text", "order", "detail", "excerpt", "labels", "removed", "added", "steps", "bulks")
_NO_ROOM = 256


def body(kind: str, ts: int, chat: str | None, given: dict[str, Any], texts: TextPolicy) -> bytes:
    """One event of at most 64 KiB. ``None`` is left out: absent is unknown. Never raises."""
    event: dict[str, Any] = {"type": kind, "ts": ts}
    if chat is not None:
        event["chat"] = chat
    event.update({key: value for key, value in given.items() if value is not None})
    texts.apply(kind, event)
    _bound(event)
    raw = encoded(event)
    return raw if len(raw) <= BODY_BYTES else within(event, raw)


def encoded(event: dict[str, Any]) -> bytes:
    """Compact JSON, redacted where anything in it looks like a secret."""
    text = _dumps(event)
    if suspicious(text):
        cleaned = redact_value(plain(event))
        # A mask may be longer than what it hides.
        _bound(cleaned)
        text = _dumps(cleaned)
    return text.encode("utf-8", "replace")


def within(event: dict[str, Any], raw: bytes, limit: int = BODY_BYTES) -> bytes:
    """Drop the bulkiest optional fields, named in ``cut``, until the event fits."""
    dropped: list[str] = []
    for key in _BULKY:
        if len(raw) <= limit:
            return raw
        if key not in event:
            continue
        if key == "text":
            event[key] = _shorter(event[key], len(raw) - limit)
        else:
            del event[key]
        dropped.append(key)
        raw = encoded({**event, "cut": dropped})
    if len(raw) <= limit:
        return raw
    size = f"an event {event.get('type')} of {len(raw)} bytes is over the limit of {EVENT_BYTES}"
    gap = {"type": "gap", "ts": event["ts"], "chat": event.get("chat"), "count": 1, "reason": size}
    return encoded({key: value for key, value in gap.items() if value is not None})


def identifier(value: Any) -> str:
    """``value`` as an id of 1 to 200 characters; a longer one keeps its head and a hash."""
    text = as_text(value) or "-"
    if len(text) <= ID_CHARS:
        return text
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{text[: ID_CHARS - 17]}~{digest}"


def plain(value: Any, depth: int = 0) -> Any:
    """``value`` as JSON can say it: finite numbers, string keys, at most 16 levels deep."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= DEPTH - 4:
        return "[nested too deeply]"
    if isinstance(value, Mapping):
        return {str(key): plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(entry, depth + 1) for entry in value]
    return _other(value)


def _bound(event: dict[str, Any]) -> None:
    """Cut what the server would refuse as too long; an id keeps its identity."""
    for key, value in event.items():
        if key in _IDS:
            if type(value) is not str or not 0 < len(value) <= ID_CHARS:
                event[key] = identifier(value)
        elif key in _BOUNDS:
            if type(value) is str:
                event[key] = value[: _BOUNDS[key]]
            elif key == "detail":
                event[key] = plain(value, 2)
    if "labels" in event and isinstance(event["labels"], Mapping):
        event["labels"] = {str(k): str(v)[:WORD_CHARS] for k, v in event["labels"].items()}


def _shorter(text: str, over: int) -> str:
    # A character is at most 6 bytes here (an escaped control character), so this always fits.
    keep = max(0, len(text) - over - _NO_ROOM)
    return text[:keep] + "[cut]"


def _dumps(value: Any) -> str:
    try:
        return _ENCODER.encode(value)
    except (ValueError, TypeError, RecursionError):
        return _ENCODER.encode(plain(value))


def _other(value: Any) -> Any:
    """numpy integers, enums, paths, dates: whatever a host hands in."""
    try:
        if hasattr(value, "__index__"):
            return int(value)
        if hasattr(value, "__float__"):
            number = float(value)
            return number if math.isfinite(number) else None
        return str(getattr(value, "value", value))
    except Exception:
        return f"[{type(value).__name__}]"


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_other
)
