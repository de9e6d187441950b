"""Numbers, sizes, times and ages as an operator reads them; unknown is ``?``, never 0."""

from __future__ import annotations

from datetime import UTC, datetime

UNKNOWN = "?"
_SECOND = 1000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
LATE_MS = _MINUTE  # a user who waits shorter than this is ordinary


def number(value: float | str | None) -> str:
    """12,345 with thousands separators; a real minus sign below 0.

    A template gives ``""`` for what is not there, which is unknown as well.
    """
    if value is None or isinstance(value, str):
        return UNKNOWN
    text = f"{abs(value):,}" if isinstance(value, int) else f"{abs(value):,.2f}"
    return f"−{text}" if value < 0 else text


def short(value: int | None) -> str:
    """27.2k, 1.4M: for labels inside drawings, where the full number stands elsewhere."""
    if value is None:
        return UNKNOWN
    sign, size = ("−", -value) if value < 0 else ("", value)
    if size < 1000:
        return f"{sign}{size}"
    if size < 999_950:
        return f"{sign}{size / 1000:.1f}k" if size < 99_950 else f"{sign}{round(size / 1000)}k"
    return f"{sign}{size / 1_000_000:.1f}M"


def percent(part: int | None, whole: int | None) -> str:
    """Whole percent; ``?`` where either is unknown, ``—`` of nothing."""
    if not isinstance(part, int) or not isinstance(whole, int):
        return UNKNOWN
    if whole <= 0:
        return "—"
    share = 100 * part / whole
    return f"{share:.1f}%" if 99 <= share < 100 and part != whole else f"{round(share)}%"


def size(value: int | None) -> str:
    """Bytes as kB or MB (decimal)."""
    if value is None:
        return UNKNOWN
    if value < 1000:
        return f"{value} B"
    if value < 1_000_000:
        return f"{value / 1000:.1f} kB"
    return f"{value / 1_000_000:.1f} MB"


def age(at: int | None, now: int) -> str:
    """Time since ``at``: 12 s, 4 min, 3 h, 2 d. A clock that runs ahead gives 0 s."""
    if at is None:
        return UNKNOWN
    passed = max(0, now - at)
    if passed < _MINUTE:
        return f"{passed // _SECOND} s"
    if passed < _HOUR:
        return f"{passed // _MINUTE} min"
    if passed < 2 * _DAY:
        return f"{passed // _HOUR} h"
    return f"{passed // _DAY} d"


def duration(ms: int | None) -> str:
    """How long something took: 120 ms, 11.8 s, 3 min 05 s."""
    if ms is None:
        return UNKNOWN
    if ms < _SECOND:
        return f"{ms} ms"
    if ms < _MINUTE:
        return f"{ms / _SECOND:.1f} s"
    minutes, rest = divmod(ms // _SECOND, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def moment(at: int | None) -> datetime | None:
    """Milliseconds since the epoch as an aware datetime; None where no calendar has it."""
    if at is None:
        return None
    try:
        return datetime.fromtimestamp(at / 1000, tz=UTC)
    except (OverflowError, OSError, ValueError):
        return None


def iso(at: int | None) -> str:
    """For ``<time datetime>``: whole seconds, UTC."""
    value = moment(at)
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if value else ""


def clock(at: int | None, now: int) -> str:
    """14:02:11 today, 29 Nov 14:02:11 before, with the year when it differs. UTC."""
    value, today = moment(at), moment(now)
    if value is None or today is None:
        return UNKNOWN
    text = value.strftime("%H:%M:%S")
    if value.date() == today.date():
        return text
    day = f"{value.day} {value.strftime('%b')}"
    return f"{day} {text}" if value.year == today.year else f"{day} {value.year} {text}"


def words(name: str) -> str:
    """``summarizer_failed`` as ``summarizer failed``."""
    return name.replace("_", " ")


def plural(count: int | None, one: str, many: str | None = None) -> str:
    """``1 call``, ``3 calls``, ``? calls``."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"
