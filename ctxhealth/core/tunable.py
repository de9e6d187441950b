"""The thresholds that operators may set, each with its bounds and what it decides.

The others are arithmetic (a rounding, a calibration) rather than a matter of taste, and stay as
they are: a wrong one would make the diagnosis wrong instead of early or late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from ctxhealth.core.rules import Thresholds

SECONDS, MINUTES, PERCENT, RATIO, COUNT = "s", "min", "%", "x", ""
_SCALE = {SECONDS: 1_000.0, MINUTES: 60_000.0, PERCENT: 0.01, RATIO: 1.0, COUNT: 1.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tunable:
    """One threshold. ``low`` and ``high`` are in ``unit``, as people read it; ``codes`` are the
    findings that rest on it."""

    name: str
    label: str
    unit: str
    low: float
    high: float
    codes: tuple[str, ...]
    about: str

    @property
    def default(self) -> float:
        """In ``unit``."""
        return self.shown(getattr(Thresholds(), self.name))

    def shown(self, value: float) -> float:
        """A stored value (ms, share, count) in ``unit``."""
        return round(value / _SCALE[self.unit], 6)

    def stored(self, shown: float) -> float | int:
        """The value as ``Thresholds`` has it. Raises ValueError naming the threshold and why."""
        if not self.low <= shown <= self.high:
            raise ValueError(
                f"{self.name}: {self.low:g} to {self.high:g}{self._suffix}, not {shown:g}"
            )
        value = shown * _SCALE[self.unit]
        if not self.whole:
            return round(value, 6)
        if self.unit == COUNT and shown != int(shown):
            raise ValueError(f"{self.name}: a whole number, not {shown:g}")
        return round(value)

    @property
    def whole(self) -> bool:
        return isinstance(getattr(Thresholds(), self.name), int)

    @property
    def _suffix(self) -> str:
        return f" {self.unit}" if self.unit else ""


TUNABLES = (
    Tunable(name="unanswered_ms", label="A user waits unanswered for", unit=MINUTES, low=1,
            high=24 * 60, codes=("unanswered",),
            about="How long a user may wait without any sign of life from the agent."),
    Tunable(name="hung_ms", label="A reply hangs after", unit=SECONDS, low=30, high=3_600,
            codes=("hung",),
            about="How long one model call may take at least before it counts as hung; slow "
            "models and long outputs get more."),
    Tunable(name="offline_ms", label="An agent is offline after", unit=SECONDS, low=10,
            high=3_600, codes=("agent_offline", "agent_late"),
            about="How long an agent with a chat in trouble may be away before that is critical."),
    Tunable(name="call_ms", label="A tool call stays open for", unit=MINUTES, low=1, high=24 * 60,
            codes=("broken_pairs",),
            about="How long a tool call may wait for its result before the pair counts as broken."),
    Tunable(name="skew_ms", label="A clock is off by", unit=SECONDS, low=1, high=3_600,
            codes=("clock_skew",),
            about="How far an agent's clock may be from the server's."),
    Tunable(name="stalled_attempts", label="Compactions without gain", unit=COUNT, low=1, high=20,
            codes=("stalled",),
            about="How many attempts in a row may free nothing before the chat counts as stalled."),
    Tunable(name="summarizer_failures", label="Failed summaries", unit=COUNT, low=1, high=20,
            codes=("summarizer_failing",),
            about="How many summarizer failures in a row make a finding."),
    Tunable(name="loop_compactions", label="Compactions in a loop", unit=COUNT, low=2, high=50,
            codes=("looping",),
            about="How many compactions within a few requests count as going round in circles."),
    Tunable(name="empty_replies", label="Empty replies", unit=COUNT, low=1, high=20,
            codes=("silent_empty",),
            about="How many empty replies in a row make the chat silent."),
    Tunable(name="repeated_replies", label="Repeated replies", unit=COUNT, low=2, high=20,
            codes=("repeating",),
            about="How many times the same reply may come in a row."),
    Tunable(name="failing_turns", label="Failed turns", unit=COUNT, low=1, high=20,
            codes=("turns_failing",),
            about="How many turns in a row may end without an answer."),
    Tunable(name="overdue_requests", label="Requests past the trigger", unit=COUNT, low=1,
            high=50, codes=("overdue",),
            about="How many requests past the trigger may go by without a compaction."),
    Tunable(name="forecast_requests", label="Forecast in requests", unit=COUNT, low=1, high=50,
            codes=("near_trigger",),
            about="How many requests ahead the growth is looked at."),
    Tunable(name="near_trigger_share", label="Near the trigger from", unit=PERCENT, low=50,
            high=99, codes=("near_trigger",),
            about="The share of the trigger from which the load counts as near it."),
    Tunable(name="jump_share", label="A jump is", unit=PERCENT, low=5, high=100, codes=("jump",),
            about="The share of the window by which one request may grow the load."),
    Tunable(name="huge_item_share", label="A huge item is", unit=PERCENT, low=5, high=100,
            codes=("huge_item",),
            about="The share of the budget that one message may take."),
    Tunable(name="undercount", label="The agent counts too little below", unit=RATIO, low=0.3,
            high=0.99, codes=("undercount",),
            about="The agent's count as a share of the provider's below which its meter is off."),
    Tunable(name="overcount", label="The agent counts too much above", unit=RATIO, low=1.01,
            high=5, codes=("overcount",),
            about="The agent's count as a multiple of the provider's above which its meter is "
            "off."),
)  # fmt: skip
BY_NAME: Mapping[str, Tunable] = {tunable.name: tunable for tunable in TUNABLES}
_FIELDS = frozenset(field.name for field in fields(Thresholds))
assert set(BY_NAME) <= _FIELDS, "a tunable that is no threshold"


def thresholds_with(values: Mapping[str, float]) -> Thresholds:
    """The defaults with these stored values in their place; unknown names are passed over."""
    known = {
        name: int(value) if BY_NAME[name].whole else value
        for name, value in values.items()
        if name in BY_NAME
    }
    return replace(Thresholds(), **known) if known else Thresholds()  # type: ignore[arg-type]
