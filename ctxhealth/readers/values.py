"""Reading single values out of rows whose formats are internal to their programs and change.

Every accessor gives None or an empty value where a key is missing or of another type.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
# Room for the sender to recognise a secret that stands across the cut at 400 characters.
EXCERPT_CHARS = 400 + 2_048


def text_at(row: Row, key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) and value else None


def word_at(row: Row, key: str) -> str | None:
    """A name or an id, cut to what an event may carry."""
    value = text_at(row, key)
    return None if value is None else value[:200]


def dict_at(row: Row, key: str) -> Row:
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def list_at(row: Row, key: str) -> list[Any]:
    value = row.get(key)
    return value if isinstance(value, list) else []


def count_at(row: Row, *keys: str) -> int | None:
    """The first of ``keys`` that holds a whole number of at least 0."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            return value
    return None


def short(uuid: str) -> str:
    """An item's id: enough of the row's uuid to find it in the file, short enough for lists."""
    return uuid[:13]


def one_line(text: str, limit: int) -> str:
    """``text`` on one line, cut with an ellipsis."""
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "\u2026"
