"""Numbers and times as they stand in sentences: thousands separators, UTC, whole minutes."""

from __future__ import annotations

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def number(value: float | None) -> str:
    """``140261`` -> ``140,261``; unknown -> ``?``."""
    return "?" if value is None else f"{value:,.0f}"


def percent(share: float | None) -> str:
    return "?" if share is None else f"{share * 100:.0f}%"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``plural(1, "reply", "replies")`` -> ``1 reply``."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {many or one + 's'}"


def duration(ms: int) -> str:
    """Milliseconds -> ``45 s``, ``12 min``, ``3 h 20 min``, ``2 days``."""
    if ms < 2 * MINUTE:
        return f"{max(0, ms) // 1000} s"
    if ms < 2 * HOUR:
        return f"{ms // MINUTE} min"
    if ms < 2 * DAY:
        hours, rest = divmod(ms, HOUR)
        return f"{hours} h {rest // MINUTE} min"
    return f"{ms // DAY} days"


def clock(at: int) -> str:
    """Milliseconds since the epoch -> ``14:02 UTC``."""
    minutes = at // MINUTE % (24 * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d} UTC"


def clip(text: str | None, limit: int) -> str | None:
    """``text`` cut to ``limit`` characters, so that folded state stays small."""
    if text is None or len(text) <= limit:
        return text
    return text[: limit - 1] + "\u2026"


def sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]
