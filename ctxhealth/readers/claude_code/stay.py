"""Failed automatic compactions that leave nothing but a load that stays.

Claude Code compacts before a turn when the load is at its level: 33,000 below a window of
200,000 (observed: 160,000 none, 170,000 yes). Where a new turn is answered at or above the level
and no compaction is recorded, an attempt failed or compaction is switched off; one turn proves
nothing, so attempts are told from the second on. Every one is marked ``inferred``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctxhealth.readers.claude_code.rows import Row, count_at, dict_at, short
from ctxhealth.readers.claude_code.timeline import Part, Timeline

WINDOW = 200_000
LEVEL = WINDOW - 33_000
# An accepted load above this shows a larger window, or compaction switched off.
TOO_HIGH = 190_000
_PROOF = 2
_TOTALS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")

# Model id -> its window, where known.
WindowOf = Callable[[str], int | None]


class Stay(Part):
    """``suspects`` are turns answered at the level since the last compaction of any outcome."""

    kept = ("suspects", "proven", "off", "turn", "load", "replied", "cost", "noisy", "count",
            "small")  # fmt: skip

    def __init__(self, line: Timeline, window_of: WindowOf | None) -> None:
        self._line = line
        self._window_of = window_of
        self.suspects: list[dict[str, Any]] = []
        self.proven = 0
        self.off = False
        self.small = False
        self.turn: str | None = None
        self.load = 0
        self.replied = 0
        self.cost: dict[str, int] = {}
        self.noisy = False
        self.count = 0

    def reply(self, load: int, model: str | None, turn: str | None, ts: int) -> None:
        """A reply of the chat's own was accepted at ``load``."""
        before, new_turn = self.load, turn != self.turn
        self.load, self.turn = load, turn
        self.replied += load
        if load > TOO_HIGH:
            self.off = True
            self.suspects.clear()
        elif new_turn and before >= LEVEL and load >= LEVEL and self._applies(model):
            self.suspects.append({"before": before, "after": load, "ts": ts, "turn": turn})
            self.proven += 1

    def known(self, *, automatic_at: int | None = None) -> None:
        """A compaction left a trace of its own; where it was automatic, at which load."""
        self.suspects.clear()
        self.proven, self.load, self.turn, self.noisy = 0, 0, None, True
        if automatic_at is not None and 140_000 <= automatic_at <= WINDOW:
            self.small = True

    def disturb(self) -> None:
        """Something else was billed too, such as a sub-agent: totals prove nothing now."""
        self.noisy = True

    def billed(self, row: Row, model: str | None) -> None:
        """The running totals of the session: what they grew beyond the replies was a summary."""
        for name, usage in dict_at(row, "modelUsage").items():
            if not isinstance(usage, dict):
                continue
            total = sum(count_at(usage, key) or 0 for key in _TOTALS)
            grown = total - self.cost.get(name, 0)
            known = name in self.cost
            self.cost[name] = total
            if name == model and known and not self.noisy and self.suspects:
                self._evidence(grown - self.replied)
        self.replied, self.noisy = 0, False
        if len(self.cost) > 50:
            self.cost.clear()

    def tell(self) -> None:
        """The suspected attempts, once a second turn confirms the first."""
        if self.proven < _PROOF:
            return
        for suspect in self.suspects:
            self.count += 1
            self._line.add(
                "compaction.finished", suspect["ts"], **_inferred(suspect, self.count),
                summarizer=suspect.get("summarizer"),
            )  # fmt: skip
        self.suspects.clear()

    def _evidence(self, hidden: int) -> None:
        suspect = self.suspects[-1]
        calls = round(hidden / suspect["before"])
        if calls >= 1:
            suspect["summarizer"] = {
                "calls": calls, "input": hidden, "error": "other",
                "detail": "billed beyond the replies, without a compaction to show for it",
            }  # fmt: skip

    def _applies(self, model: str | None) -> bool:
        if self.off or model is None or "[1m]" in model:
            return False
        window = self._window_of(model) if self._window_of is not None else None
        return window == WINDOW or (window is None and self.small)


def _inferred(suspect: dict[str, Any], number: int) -> dict[str, Any]:
    before, after = suspect["before"], suspect["after"]
    return {
        "attempt": f"inferred-{short(suspect['turn'] or '')}-{number}",
        "trigger": "proactive",
        "scope": "prompt",
        "reported": "not_recorded",
        "inferred": True,
        "before": before,
        "after": after,
        "meanwhile": max(0, after - before),
        "reason": f"Inferred: the load stayed at {after:,}, above the {LEVEL:,} at which this "
        "client compacts by itself, and no compaction is recorded. An automatic attempt failed "
        "without a trace, or automatic compaction is switched off.",
    }
