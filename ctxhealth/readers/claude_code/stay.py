"""Failed automatic compactions that leave nothing but a load that stays.

Claude Code compacts before a turn once the load has reached its level; with a window of 200,000
it was seen to compact at 170,000 and not at 160,000. Where a turn's first request leaves at or
above that and no compaction is recorded, an attempt failed without a trace or compaction is
switched off. Every such attempt is marked ``inferred`` and says so.
"""

from __future__ import annotations

from collections.abc import Callable

from ctxhealth.readers.base import Event
from ctxhealth.readers.timeline import Part, Timeline
from ctxhealth.readers.values import Row, count_at, dict_at, short

WINDOW = 200_000
LEVEL = 170_000
# An accepted load above this shows a larger window, or compaction switched off.
TOO_HIGH = 190_000
# An automatic compaction that began between these shows a window of 200,000.
_SMALL = range(140_000, WINDOW + 1)
_TOTALS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_MOST_MODELS = 50

# Model id -> its window, where known.
WindowOf = Callable[[str], int | None]


class Stay(Part):
    """``load`` is the last reply's since the last compaction of any outcome, ``turn`` its turn.

    ``off``: nothing can be inferred for this chat. ``small``: its window is known to be small.
    """

    kept = ("load", "turn", "off", "small", "count", "cost", "replied", "quiet")

    def __init__(self, line: Timeline, window_of: WindowOf | None) -> None:
        self._line = line
        self._window_of = window_of
        self.load = 0
        self.turn: str | None = None
        self.off = self.small = False
        self.count = 0
        self.cost: dict[str, int] = {}
        self.replied = 0
        self.quiet = True

    def request(self, turn: str | None, model: str | None, ts: int) -> list[Event]:
        """A request leaves: the attempt that must have failed before it, if any."""
        first = turn is not None and turn != self.turn
        self.turn = turn or self.turn
        if not first or self.load < LEVEL or not self._applies(model):
            return []
        self.count += 1
        reason = (
            f"Inferred: this turn began at {self.load:,} tokens, where this client compacts by "
            "itself, and no compaction is recorded. An automatic attempt failed without a trace, "
            "or automatic compaction is switched off."
        )
        attempt = f"inferred-{self.count}-{short(turn or '')}"
        # A compaction of this program that fails leaves the history as it was.
        return [
            self._line.make(
                "compaction.finished", ts, attempt=attempt, trigger="proactive", scope="prompt",
                reported="not_recorded", inferred=True, before=self.load, after=self.load,
                reason=reason,
            )
        ]  # fmt: skip

    def reply(self, load: int) -> None:
        """A reply was accepted at ``load``."""
        self.load = load
        self.replied += load
        self.off = self.off or load > TOO_HIGH

    def known(self, *, automatic_at: int | None = None) -> None:
        """A compaction left a trace of its own; where an automatic one succeeded, at what load."""
        self.load, self.quiet = 0, False
        self.small = self.small or automatic_at in _SMALL

    def disturb(self) -> None:
        """Something else was billed too, such as a sub-agent: the totals prove nothing now."""
        self.quiet = False

    def billed(self, row: Row, model: str | None, ts: int) -> None:
        """The running totals of the session: what they grew beyond the replies were summaries."""
        for name, usage in dict_at(row, "modelUsage").items():
            if not isinstance(usage, dict):
                continue
            total = sum(count_at(usage, key) or 0 for key in _TOTALS)
            known = name in self.cost
            hidden = total - self.cost.get(name, 0) - self.replied
            self.cost[name] = total
            if name == model and known and self.quiet and self.load >= LEVEL:
                self._hidden(hidden, ts)
        self.replied, self.quiet = 0, True
        if len(self.cost) > _MOST_MODELS:
            self.cost.clear()

    def _hidden(self, tokens: int, ts: int) -> None:
        calls = round(tokens / self.load)
        if calls >= 1:
            text = (
                f"The session was billed {tokens:,} input tokens beyond its replies, about {calls} "
                "times the context: summaries that were asked for and not used."
            )
            self._line.add(
                "note", ts, level="warning", code="unused_summaries", count=calls, text=text
            )

    def _applies(self, model: str | None) -> bool:
        if self.off or model is None or "[1m]" in model:
            return False
        window = self._window_of(model) if self._window_of is not None else None
        return window == WINDOW or (window is None and self.small)
