"""When automatic compaction stops trying, and what lets it try again.

A latch stops at most what justified it. That nothing could be folded is a property of the history
at that step, so it never latches. A failed summarizer call costs tokens every time, so it latches
by the input hash, until the input has changed and grown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from .reading import HistoryError, Reader

LatchKind = Literal["summarizer", "no_gain"]
Cause = Literal["proactive", "idle", "overflow", "manual", "forced"]
#: Nothing to lose by trying: the request would be refused, or a person asked.
BYPASSES: tuple[str, ...] = ("manual", "overflow", "at_ceiling")
GROWTH_SHARE = 0.05


@dataclass(frozen=True)
class Latch:
    """One set latch. ``tokens`` is the size of the input that failed; ``None`` is unknown."""

    kind: LatchKind
    key: str
    calls: int
    tokens: int | None = None
    reason: str | None = None
    attempt: str | None = None

    def to_dict(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "key": self.key,
            "calls": self.calls,
            "tokens": self.tokens,
            "reason": self.reason,
            "attempt": self.attempt,
        }

    @classmethod
    def from_dict(cls, data: object) -> Latch:
        """Read what ``to_dict`` wrote. Raises HistoryError naming the field and the reason."""
        read = Reader(data, "latch")
        kind = read.text("kind")
        if kind not in ("summarizer", "no_gain"):
            raise HistoryError(read.at("kind"), f"unknown kind {kind!r}")
        return cls(
            kind="summarizer" if kind == "summarizer" else "no_gain",
            key=read.text("key"),
            calls=read.size("calls"),
            tokens=read.size_or_none("tokens"),
            reason=read.text_or_none("reason"),
            attempt=read.text_or_none("attempt"),
        )


@dataclass(frozen=True)
class Decision:
    """Whether an attempt may run. ``latch`` is the latch from now on, ``why`` a short code.

    ``why`` is ``open`` (no latch), ``released``, ``manual``, ``overflow`` or ``at_ceiling`` where
    it may run, and ``latched`` where it may not.
    """

    allowed: bool
    why: str
    latch: Latch | None


@dataclass(frozen=True)
class LatchPolicy:
    """The rules, pure: the latch is handed in and comes back. Sizes are tokens.

    ``window`` gives the growth that releases, ``ceiling`` (the budget) the load from which a latch
    no longer holds anything back. ``None`` is unknown and never holds a chat back.
    """

    window: int | None = None
    ceiling: int | None = None
    growth_share: float = GROWTH_SHARE

    @property
    def growth(self) -> int | None:
        """Tokens by which the input must grow before a new attempt is worth its calls."""
        return None if self.window is None else math.ceil(self.growth_share * self.window)

    def may_attempt(
        self, latch: Latch | None, *, key: str, tokens: int | None, cause: Cause = "proactive"
    ) -> Decision:
        """Decide about an attempt on the input with hash ``key`` and size ``tokens``."""
        if latch is None:
            return Decision(True, "open", None)
        if self._is_released(latch, key, tokens):
            return Decision(True, "released", None)
        if cause in ("manual", "forced"):
            return Decision(True, "manual", latch)
        if cause == "overflow":
            return Decision(True, "overflow", latch)
        if self.ceiling is not None and tokens is not None and tokens >= self.ceiling:
            return Decision(True, "at_ceiling", latch)
        return Decision(False, "latched", latch)

    def _is_released(self, latch: Latch, key: str, tokens: int | None) -> bool:
        if key == latch.key:
            return False
        if self.growth is None or latch.tokens is None or tokens is None:
            return True
        return tokens >= latch.tokens + self.growth

    def after_attempt(
        self,
        latch: Latch | None,
        *,
        outcome: str,
        calls: int,
        key: str,
        tokens: int | None,
        reason: str | None = None,
        attempt: str | None = None,
    ) -> Latch | None:
        """Return the latch after an attempt with a computed outcome (see ``classify_outcome``).

        Success clears. ``summarizer_failed``, ``no_progress`` and ``grew`` latch where a
        summarizer call was made. Everything else leaves the latch as it is.
        """
        if outcome in ("reduced", "fell_back"):
            return None
        if calls < 1 or outcome not in ("summarizer_failed", "no_progress", "grew"):
            return latch
        kind: LatchKind = "summarizer" if outcome == "summarizer_failed" else "no_gain"
        return Latch(kind, key, calls, tokens, reason, attempt)

    def after_reading(self, latch: Latch | None, *, tokens: int, trigger: int) -> Latch | None:
        """Return the latch after a reading: one below the trigger leaves nothing to hold back."""
        return None if tokens < trigger else latch

    def wire(self, latch: Latch, *, name: str, scope: str = "chat") -> dict[str, object]:
        """Return the fields of the event ``latch.set`` for this latch."""
        release: dict[str, object] = {"input_changed": True, "success": True}
        if self.growth is not None:
            release["growth"] = self.growth
        fields: dict[str, object] = {
            "latch": name,
            "kind": latch.kind,
            "scope": scope,
            "key": latch.key,
            "bypass": list(BYPASSES),
            "release": release,
        }
        rest = {"reason": latch.reason, "attempt": latch.attempt, "tokens": latch.tokens}
        return fields | {name: value for name, value in rest.items() if value is not None}
