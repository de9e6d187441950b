"""One line of a session file -> the JSON objects on it, and what could not be read.

Files in the wild hold two objects on one line, a torn object with a whole one behind it, a
string with raw newlines, NUL bytes after a crash, and bytes that are not UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
# A string with raw newlines is put together over at most so many lines and characters.
JOIN_LINES = 8
JOIN_CHARS = 1024 * 1024
_SALVAGE_TRIES = 50
_LENIENT = json.JSONDecoder(strict=False)


@dataclass
class Parsed:
    """``problems`` are sentences, one for each piece that is lost; ``repaired`` lost nothing."""

    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    repaired: bool = False


class ObjectParser:
    """Keeps the beginning of an object whose string was broken by raw newlines.

    ``is_row`` tells a row of its own from an object inside a torn one.
    """

    def __init__(self, is_row: Callable[[Row], bool]) -> None:
        self._is_row = is_row
        self.carry: str | None = None
        self.carried = 0

    def parse(self, line: bytes) -> Parsed:
        """Never raises, whatever the bytes are."""
        if not line.strip():
            return Parsed()
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return self._slowly(line)
        found = self.flush()
        if isinstance(value, dict):
            found.rows.append(value)
        else:
            found.problems.append(f"a JSON {type(value).__name__} stands where an object should")
        return found

    def flush(self) -> Parsed:
        """Give up what was carried: it is lost, and said so."""
        lost = Parsed()
        if self.carry is not None:
            lost.problems.append(f"a torn object of {len(self.carry)} characters")
        self.carry, self.carried = None, 0
        return lost

    def _slowly(self, line: bytes) -> Parsed:
        text = line.decode("utf-8", "replace").replace("\x00", "").strip().removeprefix("\ufeff")
        if not text:
            return Parsed(problems=[f"{len(line)} bytes of NUL"])
        joined = self._joined(text)
        if joined is not None:
            return joined
        found = self.flush()
        end = self._objects(text, found)
        rest = text[end:].strip()
        if rest:
            self._rest(rest, found)
        found.repaired = True
        return found

    def _joined(self, text: str) -> Parsed | None:
        """``text`` as the continuation of what is carried, if it is that."""
        if self.carry is None or text.startswith('{"'):
            return None
        whole = f"{self.carry}\n{text}"
        rows: list[Row] = []
        try:
            value, end = _LENIENT.raw_decode(whole)
            if isinstance(value, dict) and not whole[end:].strip():
                rows.append(value)
        except (ValueError, RecursionError):
            pass
        if rows:
            self.carry, self.carried = None, 0
            return Parsed(rows, repaired=True)
        if self.carried < JOIN_LINES and len(whole) < JOIN_CHARS:
            self.carry, self.carried = whole, self.carried + 1
            return Parsed()
        return None

    def _objects(self, text: str, found: Parsed) -> int:
        """Whole objects from the left, into ``found``; how far they reach."""
        at = 0
        while at < len(text):
            try:
                value, end = _LENIENT.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            if not isinstance(value, dict):
                break
            found.rows.append(value)
            at = end
            while at < len(text) and text[at] in " \t\r\n,\x1e":
                at += 1
        return at

    def _rest(self, rest: str, found: Parsed) -> None:
        salvaged = self._behind(rest)
        if salvaged is not None:
            start, row = salvaged
            found.rows.append(row)
            found.problems.append(f"a torn object of {start} characters before a whole one")
        elif rest.startswith('{"') and len(rest) < JOIN_CHARS and _ends_in_string(rest):
            self.carry, self.carried = rest, 1
        else:
            found.problems.append(_why(rest))

    def _behind(self, text: str) -> tuple[int, Row] | None:
        """A whole row that ends the line, behind a torn one."""
        at = len(text)
        starts = []
        for _ in range(_SALVAGE_TRIES):
            at = text.rfind('{"', 1, at)
            if at < 0:
                break
            starts.append(at)
        # The outermost whole object is the row; those inside it start further right.
        for start in reversed(starts):
            try:
                value, end = _LENIENT.raw_decode(text, start)
            except (ValueError, RecursionError):
                continue
            if end == len(text) and isinstance(value, dict) and self._is_row(value):
                return start, value
        return None


def _ends_in_string(text: str) -> bool:
    try:
        _LENIENT.raw_decode(text)
    except json.JSONDecodeError as error:
        return error.msg.startswith(("Unterminated string", "Invalid control"))
    except RecursionError:
        return False
    return False


def _why(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"{error.msg} at character {error.pos + 1} of {len(text)}"
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return str(error)[:200]
    return "not an object"
