"""What the fold judges by: thresholds, the model table and the operators' overrides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ctxhealth.core.windows import ModelWindow, table_window

Lookup = Callable[[str, str | None], ModelWindow | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Thresholds:
    """Every number that a finding rests on. Times in milliseconds, shares from 0 to 1."""

    # Defaults where the agent declares none (both are marked assumed).
    reserve_tokens: int = 4_096
    reserve_share: float = 0.05
    trigger_share: float = 0.8
    # Load.
    near_trigger_share: float = 0.9
    jump_share: float = 0.25
    huge_item_share: float = 0.2
    overdue_requests: int = 3
    overdue_share: float = 0.9
    overdue_room: int = 25_000
    # Real agents leave 11,000 tokens and more under the budget when they start.
    overdue_close: int = 10_000
    forecast_requests: int = 3
    reserve_share_of_window: float = 0.9
    # The meter.
    undercount: float = 0.8
    overcount: float = 1.25
    # A pair with the budget between its counts: they must differ by more than rounding.
    crossing: float = 0.95
    calibration_pairs: int = 3
    window_conflict_share: float = 0.02
    evidence_share: float = 0.25
    truncated_share: float = 0.6
    identical_requests: int = 3
    cumulative_steps: int = 2
    # Compaction.
    stalled_attempts: int = 2
    summarizer_failures: int = 3
    loop_compactions: int = 3
    loop_requests: int = 10
    loop_turns: int = 2
    loop_turn_row: int = 3
    loop_refire: int = 2
    relieved_share: float = 0.95
    retries_growing: int = 2
    # Replies and turns.
    empty_replies: int = 2
    repeated_replies: int = 3
    failing_turns: int = 2
    # Time.
    unanswered_ms: int = 10 * 60_000
    hung_ms: int = 180_000
    hung_medians: int = 5
    # A request that allows a long output gets the time to write it: real replies of 15,000 and
    # 16,000 tokens took 192 and 183 s.
    output_a_second: int = 60
    hung_longest_ms: int = 300_000
    # After a reconnect the agent's backlog arrives first.
    backlog_ms: int = 45_000
    call_ms: int = 10 * 60_000
    offline_ms: int = 45_000
    # After a restart of the server itself its agents get longer to come back.
    restart_ms: int = 90_000
    live_transcript_ms: int = 60 * 60_000
    skew_ms: int = 30_000
    # Incidents: calm for so many requests, or for so long, closes one.
    incident_calm_requests: int = 3
    incident_calm_ms: int = 10 * 60_000
    # Latches.
    cooldown_headroom_share: float = 0.1
    growth_share: float = 0.05
    inferred_requests: int = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowOverride:
    """An operator's word about a window; it stands above every other source.

    ``model`` is an id or a pattern (``*`` and ``?``) in any case; ``*`` alone also stands for a
    chat whose model nobody names. ``provider`` None is any.
    """

    model: str
    window: int
    max_input: int | None = None
    provider: str | None = None
    by: str = ""

    def fits(self, model: str | None, provider: str | None) -> bool:
        if self.provider is not None and self.provider.lower() != (provider or "").lower():
            return False
        if model is None:
            return self.model == "*"
        return fnmatchcase(model.lower(), self.model.lower())


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """``overrides``: the first that fits counts, so the most particular ones stand first."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    lookup: Lookup = table_window
    overrides: tuple[WindowOverride, ...] = ()

    def override(self, model: str | None, provider: str | None) -> WindowOverride | None:
        """The first override that fits this model and provider."""
        for entry in self.overrides:
            if entry.fits(model, provider):
                return entry
        return None


def default_rules() -> Rules:
    """The packaged table, the default thresholds, no override."""
    return Rules()
