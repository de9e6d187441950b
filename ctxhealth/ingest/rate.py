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
        self._left = min(self.rate, self._left + (now - self._at) * self.rate) - count
        self._at = now
        return 0.0 if self._left >= 0 else -self._left / self.rate
