"""One session file that is read piece by piece, from where it was left."""

from __future__ import annotations

import os
from collections.abc import Callable

from ctxhealth.cli.places import HEAD, Place, begins_with, head_hash, packed
from ctxhealth.readers.base import Event, Reader
from ctxhealth.readers.lines import Line, LineSplitter

# Read at once; also the most that a file may keep the others waiting.
CHUNK = 1024 * 1024


class FollowedFile:
    """Opened for each piece and closed again, so that thousands may be followed.

    ``fresh`` makes a reader for a file from its beginning. Raises OSError where the file cannot
    be read, and what ``fresh`` raises where it is none that can be understood.
    """

    def __init__(self, path: str, fresh: Callable[[str, bytes], Reader]) -> None:
        self.path = path
        self._fresh = fresh
        self.reader: Reader | None = None
        self._lines = LineSplitter()
        self._head = ""
        self._mtime_ns = 0
        self.replaced = 0

    def resume(self, place: Place, reader: Reader) -> None:
        """Go on at ``place``. Raises ValueError where its state is of another version."""
        reader.restore(place.reader_state())
        self.reader = reader
        self._lines = LineSplitter(place.offset)
        self._head = place.head

    @property
    def position(self) -> int:
        """Bytes taken from the file, the unfinished last line included."""
        return self._lines.consumed + self._lines.waiting

    def read(self) -> tuple[list[Event], bool]:
        """The events of the next piece, and whether there is more to read at once."""
        with open(self.path, "rb") as file:
            status = os.fstat(file.fileno())
            first = file.read(HEAD)
            if self._is_other(first, status.st_size):
                self._begin_again(first)
            if self.reader is None:
                self.reader = self._fresh(self.path, first)
            file.seek(self.position)
            chunk = file.read(CHUNK)
        events: list[Event] = []
        for line in self._lines.push(chunk):
            events += self._line(line)
        self._head = head_hash(first)
        self._mtime_ns = status.st_mtime_ns
        return events, self.position < status.st_size

    def settle(self, idle_ms: int) -> list[Event]:
        return [] if self.reader is None else self.reader.settle(idle_ms)

    def finish(self) -> list[Event]:
        """The end of a file that is not followed. A whole last line needs no newline; a torn
        one stays for the next time."""
        if self.reader is None:
            return []
        events: list[Event] = []
        if self._lines.waiting and _is_whole(self._lines.peek()):
            events += self._line(self._lines.rest())
        return events + self.reader.finish()

    @property
    def torn(self) -> int:
        """Bytes of a last line that is not finished."""
        return self._lines.waiting

    def place(self) -> Place:
        assert self.reader is not None
        return Place(
            self.path, self._lines.consumed, self.position, self._mtime_ns, self._head,
            self.reader.format, self.reader.waiting, packed(self.reader.snapshot()),
        )  # fmt: skip

    def _line(self, line: Line) -> list[Event]:
        assert self.reader is not None
        if line.data is None:
            return self.reader.skip(line.size)
        return self.reader.feed(line.data)

    def _is_other(self, first: bytes, size: int) -> bool:
        """The file was cut or replaced since the last piece."""
        if not self._head:
            return False
        return size < self.position or not begins_with(first, self._head)

    def _begin_again(self, first: bytes) -> None:
        """Read the new content from its start. Rows of the same session that were read before
        are recognised by the reader; another session gets a reader of its own."""
        before, self.reader = self.reader, None
        self._lines = LineSplitter()
        self._head = ""
        self.replaced += 1
        chat = None if before is None else before.chat
        if chat is not None and chat.partition(":")[0].encode() in first:
            self.reader = before


def _is_whole(line: bytes) -> bool:
    text = line.strip(b"\x00 \t\r\n")
    # The end of a document over many lines.
    if text and not text.strip(b"]}"):
        return True
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return False
    import json

    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
