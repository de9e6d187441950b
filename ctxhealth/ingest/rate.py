"""How fast one connection may send: a token bucket on monotonic time."""

from __future__ import annotations


class Bucket:
    """``rate`` events a second, and as many at once after a quiet second."""

    __slots__ = ("_at", "_left", "rate")

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._left = rate
        self._at = now

    def take(self, count: int, now: float) -> float:
        """Take ``count``; seconds to wait before the next (0 where there was enough)."""
        left = self._left + (now - self._at) * self.rate
        if left > self.rate:
            left = self.rate
        self._left = left = left - count
        self._at = now
        return 0.0 if left >= 0 else -left / self.rate
