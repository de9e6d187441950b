"""Timestamps of session files -> milliseconds since the epoch, in the order of the file."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

# A step back of less than this is rows written out of order; a longer one is another clock.
BACKWARD_MS = 3_600_000
_LATEST = 253_402_300_799_000


def millis(value: Any) -> int | None:
    """ISO 8601 (UTC where no zone is given), seconds or milliseconds; None where it is no time."""
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        number = int(value if value > 100_000_000_000 else value * 1000)
        return number if number <= _LATEST else None
    return None


def _from_text(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)  # noqa: UP017  Python 3.10
    ms = round(moment.timestamp() * 1000)
    return ms if 0 <= ms <= _LATEST else None


def in_order(ts: int, latest: int) -> int:
    """``ts``, or ``latest`` where the row is only written late: time does not step back."""
    return latest if ts < latest < ts + BACKWARD_MS else ts
