"""What a fallback must keep, as rules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KeepRules:
    """Limits of the deterministic fallback. Shares are of the target, sizes are tokens.

    ``turns`` most recent turns are never folded into a bulk. ``results`` newest tool results are
    not turned into pointers. ``cut_calls`` allows shortening the text of a closed tool call; leave
    it off where that text is JSON that a provider parses.
    """

    turns: int = 1
    results: int = 5
    extract_chars: int = 2_000
    merge: int = 3
    head_share: float = 0.6
    large_in_current: float = 0.25
    large_in_topics: float = 0.06
    cut_calls: bool = False

    def __post_init__(self) -> None:
        for name, least in (("turns", 1), ("results", 0), ("extract_chars", 200), ("merge", 2)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}: must be at least {least}, not {getattr(self, name)}")
        for name in ("head_share", "large_in_current", "large_in_topics"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name}: must be above 0 and at most 1")
