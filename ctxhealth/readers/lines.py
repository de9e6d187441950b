"""Bytes of a growing file -> complete lines, without ever holding a line twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

# The longest line kept: public sessions hold lines of 13 million characters.
LINE_BYTES = 64 * 1024 * 1024


class Line(NamedTuple):
    """``data`` without its newline, None where the line was longer than the limit; ``size`` with
    it."""

    data: bytes | None
    size: int


class LineSplitter:
    """Feed chunks, get lines. ``consumed`` counts the bytes of lines already given out."""

    def __init__(self, consumed: int = 0, limit: int = LINE_BYTES) -> None:
        self.consumed = consumed
        self._limit = limit
        self._parts: list[bytes] = []
        self._held = 0
        self._dropped = 0

    def push(self, chunk: bytes) -> Iterator[Line]:
        """The lines that ``chunk`` completes."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk[start:end])
            yield self._line(newline=1)
            start = end + 1
        if start < len(chunk):
            self._keep(chunk[start:] if start else chunk)

    @property
    def waiting(self) -> int:
        """Bytes of the unfinished last line."""
        return self._held + self._dropped

    def peek(self) -> bytes:
        """The unfinished last line as far as it came; it stays where it is."""
        self._parts = [b"".join(self._parts)]
        return self._parts[0]

    def rest(self) -> Line:
        """Give the last line out although no newline ends it."""
        return self._line(newline=0)

    def _keep(self, part: bytes) -> None:
        if self._dropped or self._held + len(part) > self._limit:
            self._dropped += self._held + len(part)
            self._parts.clear()
            self._held = 0
        elif part:
            self._parts.append(part)
            self._held += len(part)

    def _line(self, newline: int) -> Line:
        size = self._held + self._dropped + newline
        data = None if self._dropped else b"".join(self._parts)
        self._parts, self._held, self._dropped = [], 0, 0
        self.consumed += size
        return Line(data, size)
