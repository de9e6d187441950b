"""Which stretch of a chat somebody wants to see, from an address: by event or by moment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

from ctxhealth.store.queries.ranges import Range, range_of, seq_at
from ctxhealth.web.format import moment

MOST = 2**53 - 1
_BY_EVENT = ("first", "last")
_BY_MOMENT = ("since", "until")


class BadRange(ValueError):
    """Names the field and what it must be."""


def asked_range(query: Mapping[str, str], chat_id: int, head: int) -> Range | None:
    """The range that an address asks for, the whole chat where it asks for none.

    None where the chat has no event. Raises BadRange.
    """
    whole = range_of(chat_id, 1, head)
    if whole is None:
        return None
    first, last = (_event(query, name) for name in _BY_EVENT)
    since, until = (_moment(query, name) for name in _BY_MOMENT)
    if since is not None and until is not None and since > until:
        raise BadRange("until: must not be before since")
    if since is not None:
        first = seq_at(chat_id, since - 1, whole) + (since > whole.first_at)
    if until is not None:
        last = seq_at(chat_id, until, whole)
    first, last = first or whole.first, last or whole.last
    if first > last and since is None and until is None:
        raise BadRange("last: must not be before first")
    # Between two moments without an event: the events on either side of them.
    return range_of(chat_id, min(first, last), max(first, last))


def narrowed(query: Mapping[str, str]) -> bool:
    return any(query.get(name) for name in (*_BY_EVENT, *_BY_MOMENT))


def address_of(query: Mapping[str, str]) -> str:
    """The range's own part of the address, ready for a further field."""
    own = {name: query[name] for name in (*_BY_EVENT, *_BY_MOMENT) if query.get(name)}
    return f"?{urlencode(own)}&" if own else "?"


def asked_event(query: Mapping[str, str], within: Range) -> int | None:
    """The event that ``at`` names, within the range; None where it names none."""
    seq = _event(query, "at")
    return None if seq is None else max(within.first, min(seq, within.last))


def field_of(at: int) -> str:
    """For ``<input type=datetime-local>``: whole seconds, UTC."""
    value = moment(at)
    return f"{value:%Y-%m-%dT%H:%M:%S}" if value else ""


def _event(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or not 0 < int(text[:20]) <= MOST:
        raise BadRange(f"{name}: must be the number of an event")
    return int(text)


def _moment(query: Mapping[str, str], name: str) -> int | None:
    """Milliseconds, or a moment like 2026-11-30T14:05:00 in UTC."""
    text = query.get(name, "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise BadRange(f"{name}: must be a moment like 2026-11-30T14:05:00") from None
    value = value if value.tzinfo else value.replace(tzinfo=UTC)
    return int(value.timestamp() * 1000) + (999 if name == "until" and "." not in text else 0)
