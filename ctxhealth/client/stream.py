"""What may be sent now: the sending side of one connection, without socket or clock."""

from __future__ import annotations

from collections import deque

from .limits import INFLIGHT_BYTES, Limits


class SendWindow:
    """Go-back-N over one connection. Times are monotonic seconds, given by the caller."""

    def __init__(self, acked: int, limits: Limits, now: float) -> None:
        self.acked = acked
        self.sent = acked
        self.limits = limits
        # Grows with every step back: a batch read before it must not count as sent after it.
        self.turn_back = 0
        self.waiting_since: float | None = None
        self._frames: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._busy_until = 0.0
        self._allowance = float(limits.rate)
        self._paid_at = now

    def room(self, now: float) -> int:
        """How many events the next frame may hold; 0: not now."""
        if now < self._busy_until or self._bytes >= INFLIGHT_BYTES:
            return 0
        limits = self.limits
        earned = (now - self._paid_at) * limits.rate
        self._allowance = min(float(limits.rate), self._allowance + earned)
        self._paid_at = now
        inflight = limits.inflight - (self.sent - self.acked)
        return max(0, min(limits.batch, inflight, int(self._allowance)))

    def delay(self, now: float) -> float | None:
        """Seconds until time alone makes room; None where only an ack can."""
        if now < self._busy_until:
            return self._busy_until - now
        return 0.02 if self._allowance < 1 else None

    def record(self, count: int, size: int, now: float) -> None:
        """``count`` more events left in a frame of ``size`` bytes."""
        self.sent += count
        self._allowance -= count
        self._bytes += size
        self._frames.append((self.sent, size))
        if self.waiting_since is None:
            self.waiting_since = now

    def ack(self, upto: int, now: float) -> bool:
        """Cumulative; True if it moved. An ack beyond what was sent moves both."""
        if upto <= self.acked:
            return False
        self.acked = upto
        self.sent = max(self.sent, upto)
        while self._frames and self._frames[0][0] <= upto:
            self._bytes -= self._frames.popleft()[1]
        self.waiting_since = now if self._frames else None
        return True

    def resend(self, start: int) -> None:
        """Go back so that ``start`` is the next seq sent."""
        self.sent = start - 1
        self.acked = min(self.acked, self.sent)
        self._forget()

    def busy(self, until: float) -> None:
        """No ack will come for what is under way: wait, then send it again."""
        self._busy_until = until
        self.sent = self.acked
        self._forget()

    def _forget(self) -> None:
        self._frames.clear()
        self._bytes = 0
        self.waiting_since = None
        self.turn_back += 1
