"""Limits of protocol 1 as the agent's side applies them, and the pace of reconnecting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

PROTOCOL = 1
EVENT_BYTES = 64 * 1024
FRAME_BYTES = 256 * 1024
BATCH_EVENTS = 100
INFLIGHT_EVENTS = 1_000
INFLIGHT_BYTES = 1024 * 1024
RATE = 20_000
HEARTBEAT_S = 15.0
# No frame at all for three heartbeats: the peer is gone although the socket looks open.
SILENT_BEATS = 3
WELCOME_S = 10.0

ID_CHARS = 200
WORD_CHARS = 200
SENTENCE_CHARS = 4_000
TEXT_CHARS = 60_000
EXCERPT_CHARS = 400
DEPTH = 20

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
# After a refusal that only a person can heal (token, scope, version) there is no hurry.
REFUSED_DELAY_S = (60.0, 300.0)

CLOSE_NO_TEXT = 1007
CLOSE_FRAME_SIZE = 1009
CLOSE_RESTART = 1012
CLOSE_OVERLOAD = 1013
CLOSE_BAD_FRAME = 4400
CLOSE_TOKEN = 4401
CLOSE_SCOPE = 4403
CLOSE_VERSION = 4406
CLOSE_REPLACED = 4408
CLOSE_CANNOT_RESUME = 4409
CLOSE_TOO_BIG = 4413
CLOSE_RATE = 4429

Uniform = Callable[[float, float], float]


@dataclass(frozen=True)
class Limits:
    """What the server said it takes. Bytes are of UTF-8; ``rate`` is events per second."""

    frame_bytes: int = FRAME_BYTES
    batch: int = BATCH_EVENTS
    inflight: int = INFLIGHT_EVENTS
    event_bytes: int = EVENT_BYTES
    rate: int = RATE

    @classmethod
    def stated(cls, given: Any) -> Limits:
        """Limits from ``welcome.limits``; what is missing or absurd keeps the protocol's own."""
        known = given if isinstance(given, Mapping) else {}
        stated = {
            field.name: known[field.name]
            for field in fields(cls)
            if isinstance(known.get(field.name), int) and known[field.name] > 0
        }
        return replace(cls(), **stated)


def delay_s(attempt: int, uniform: Uniform) -> float:
    """Seconds before reconnecting, ``attempt`` = 0, 1, 2...: full jitter over 0.5 to 30 s."""
    ceiling = min(LONGEST_DELAY_S, 2 * FIRST_DELAY_S * 2 ** min(attempt, 16))
    return uniform(FIRST_DELAY_S, ceiling)
