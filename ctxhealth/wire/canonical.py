"""One canonical form for untrusted JSON, the same for both databases.

SQLite would store what PostgreSQL refuses (NUL, lone surrogates, huge numbers); a later move
between them would lose data. So everything that does not take the typed fast path goes through
``canonicalise`` once, before anything is stored.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from ctxhealth.wire.limits import JSON_DEPTH

MAX_INT = 2**53 - 1


class NotCanonical(ValueError):
    """``code`` is a word for machines, ``path`` a JSONPath, ``detail`` a sentence for people."""

    def __init__(self, code: str, path: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.path, self.detail = code, path, detail


def depth_of(raw: bytes) -> int:
    """The deepest nesting in ``raw``, brackets inside strings not counted. Linear in its size.

    Checked before parsing: a parser that recurses fails with RecursionError, not ValueError.
    """
    if raw.count(b"{") + raw.count(b"[") <= JSON_DEPTH:
        return 0
    deepest = depth = 0
    in_string = escaped = False
    for byte in raw:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"}]":
            depth -= 1
    return deepest


def loads(raw: bytes) -> Any:
    """Parse ``raw`` strictly: UTF-8 and bounded depth. ``canonicalise`` refuses the rest.

    NaN, infinities, integers beyond 2^53 - 1 and duplicate keys come out as markers, which
    ``canonicalise`` refuses with their path.
    """
    if depth_of(raw) > JSON_DEPTH:
        raise NotCanonical("too_deep", "$", f"nested deeper than {JSON_DEPTH} levels")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotCanonical("not_utf8", "$", f"not UTF-8 at byte {error.start}") from None
    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded,
            object_pairs_hook=_mark_duplicates,
        )
    except (ValueError, RecursionError) as error:
        raise NotCanonical("not_json", "$", f"not JSON: {_short(str(error))}") from None


def canonicalise(value: Any, path: str = "$") -> tuple[Any, int]:
    """Replace NUL by U+2400 and lone surrogates by U+FFFD.

    Returns the value and how many characters were replaced. Idempotent. Raises NotCanonical,
    with the path, for a number that ``loads`` could read but no database can keep.
    """
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, list):
        pairs = [canonicalise(entry, f"{path}[{at}]") for at, entry in enumerate(value)]
        return [entry for entry, _ in pairs], sum(count for _, count in pairs)
    if isinstance(value, dict):
        return _clean_object(value, path)
    if isinstance(value, _Bad):
        raise NotCanonical(value.code, path, value.detail)
    return value, 0


def _clean_object(value: dict[str, Any], path: str) -> tuple[dict[str, Any], int]:
    cleaned: dict[str, Any] = {}
    replaced = 0
    for key, entry in value.items():
        new_key, in_key = _clean(key)
        new_path = f"{path}.{_short(new_key)}"
        if isinstance(entry, _Twice) or new_key in cleaned:
            raise NotCanonical("duplicate_key", new_path, "key given twice")
        new_entry, in_entry = canonicalise(entry, new_path)
        cleaned[new_key] = new_entry
        replaced += in_key + in_entry
    return cleaned, replaced


def _clean(text: str) -> tuple[str, int]:
    if text.isascii() and "\x00" not in text:
        return text, 0
    bad = sum(1 for char in text if char == "\x00" or "\ud800" <= char <= "\udfff")
    if not bad:
        return text, 0
    return "".join(_replacement(char) for char in text), bad


def _replacement(char: str) -> str:
    if char == "\x00":
        return "\u2400"
    return "\ufffd" if "\ud800" <= char <= "\udfff" else char


class _Bad(NamedTuple):
    """Stands where a number was that cannot be kept: the parser's hooks do not know the path."""

    code: str
    detail: str


class _Twice(NamedTuple):
    """Stands where a key came twice."""


def _refuse_constant(name: str) -> _Bad:
    return _Bad("not_finite", f"{name} is not a JSON number")


def _finite(digits: str) -> float | _Bad:
    number = float(digits)
    if math.isfinite(number):
        return number
    return _Bad("not_finite", f"number {_short(digits)} is out of range")


def _bounded(digits: str) -> int | _Bad:
    # The length first: int() of thousands of digits is slow, and refused by Python beyond 4,300.
    if len(digits) <= 17 and abs(int(digits)) <= MAX_INT:
        return int(digits)
    return _Bad("number_range", f"integer {_short(digits)} is beyond 2^53 - 1")


def _mark_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[key] = _Twice() if key in found else value
    return found


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
