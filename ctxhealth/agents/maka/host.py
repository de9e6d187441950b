"""What is known of Maka's runtime host, version by version: epochs, grants, limits.

Only hosts of equal compatibility epoch talk to each other, so an epoch names a protocol exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

COMPOSITION = "maka.interactive"
DEFAULT_HOST = "ws://127.0.0.1:17443/runtime-host"

# The least that the bridge needs; the last two are its commands.
READING_GRANTS = (
    "host.status", "session.catalog.query", "subscription.open", "subscription.close",
    "session.transcript.page", "turn.query", "context.diagnostics.query",
    "execution.inspect.query",
)  # fmt: skip
ACTING_GRANTS = ("context.compact", "turn.stop")
GRANTS = READING_GRANTS + ACTING_GRANTS

CHATS_A_CONNECTION = 16
# The host closes without a word above 64.
IN_FLIGHT = 32
MESSAGE_BYTES = 1024 * 1024
PAGE_BYTES = 256 * 1024
# Of the newest text that comes with a subscription and is not read; the host takes no less.
TAIL_BYTES = 1024
HELLO_S = 5.0
ANSWER_S = 30.0


@dataclass(frozen=True)
class Epoch:
    """``latches``: a turn in which nothing could be folded once has all compaction off.
    ``high_water``: it compacts above window - min(16,384, window / 4)."""

    number: int
    latches: bool
    high_water: bool

    def trigger(self, window: int | None) -> dict[str, Any] | None:
        """Where this version starts compacting, as the protocol says it; None is not known."""
        if not window or not self.high_water:
            return None
        reserve = min(16_384, max(1, window // 4))
        return {"tokens": max(0, window - reserve), "inclusive": False, "scope": "prompt"}


# 39 was run (Maka 0.1.11). 162 was only read in its source: taken where the user says so.
TESTED = {39: Epoch(39, latches=False, high_water=True)}
READ_ONLY = {162: Epoch(162, latches=True, high_water=False)}
