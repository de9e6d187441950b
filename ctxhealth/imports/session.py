"""One session file into its chat: from the beginning, or from where an earlier file ended."""

from __future__ import annotations

import json
import threading
import zlib
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

from ctxhealth.core.windows import table_window
from ctxhealth.imports import limits
from ctxhealth.imports.errors import Broken, Refused
from ctxhealth.imports.source import Source
from ctxhealth.imports.submitting import Submitting
from ctxhealth.imports.troubles import Troubles
from ctxhealth.readers.base import Event, Reader
from ctxhealth.readers.lines import Line, LineSplitter
from ctxhealth.readers.registry import Format
from ctxhealth.store import queries, writes
from ctxhealth.store.import_place import Place
from ctxhealth.store.intake import StreamHandle
from ctxhealth.wire import Reject

Progress = Callable[..., None]


class Outcome(NamedTuple):
    """What came of a file. ``known``: it began with what was read before and brought nothing new;
    ``events`` are new ones; ``chat`` is None where nothing was stored."""

    chat: int | None
    known: bool
    lines: int
    events: int
    unreadable: int
    chats: int


class SessionImport:
    """``siblings`` are the names of the files that were dropped together, this one included."""

    def __init__(
        self, source: Source, format: Format, *, name: str, siblings: frozenset[str],
        progress: Progress, stopping: threading.Event,
    ) -> None:  # fmt: skip
        self._source = source
        self._format = format
        self._name = name.removesuffix(".gz").rpartition(".")[0] or name
        self._siblings = siblings
        self._progress = progress
        self._stopping = stopping
        self._own: dict[str, bool] = {}
        self._stream: StreamHandle | None = None
        self._to: Submitting | None = None
        self._before: Counter[str] = Counter()
        self.session = ""
        self.lines = 0
        self._last = b""
        self._barren = 0
        self.troubles = Troubles()
        self._reader = self._fresh()
        self._begin(0)

    def _begin(self, offset: int) -> None:
        """``_told`` is the digest of whole lines only: a place stands between two of them."""
        self._lines, self._digest = LineSplitter(offset), sha256()
        self._told = self._digest.copy()

    def run(self) -> Outcome:
        """Raises Refused, Broken or Stopped."""
        self.session = self._probe()
        stream = writes.import_stream(product=self._format.name, session=self.session)
        self._stream = stream
        place = queries.import_place(stream.agent, self.session)
        if self.chat() is None:
            place = self._anew(stream)
        elif place is None and not queries.stream_head(stream.stream):
            raise Refused(_READ_ELSEWHERE)
        self._reader = self._resumed(place)
        self._before = self._reader.counts.copy()
        skipped = place is not None and self._skip(place)
        self.troubles = Troubles(self._before["lines"] - self.lines)
        self._to = to = Submitting(stream, place.seq if place else 0, self._stopping)
        try:
            self._read(stream, to)
        except Broken:
            self._keep(stream, to)
            raise
        known = skipped and not to.stored
        return Outcome(self.chat(), known, **self.counts())

    def counts(self) -> dict[str, int]:
        """Of this file alone, as far as it was read."""
        since = self._reader.counts - self._before
        stored = self._to.stored if self._to is not None else 0
        return {
            "lines": self.lines, "events": stored,
            "unreadable": since["unreadable"], "chats": since["chat.opened"],
        }  # fmt: skip

    def chat(self) -> int | None:
        """The session's chat, once something of it is stored."""
        return queries.chat_of(self._stream.agent, self.session) if self._stream else None

    # Which session, and where it was left.

    def _fresh(self) -> Reader:
        assert self._format.make is not None
        return self._format.make(self._name, window_of=_window_of, elsewhere=self._has_own_file)

    def _probe(self) -> str:
        """The session's id, as its first rows say it."""
        reader, lines, left = self._fresh(), LineSplitter(), limits.PROBE_BYTES
        while reader.chat is None and left > 0 and (chunk := self._source.read(limits.CHUNK)):
            left -= len(chunk)
            for line in lines.push(chunk):
                _feed(reader, line)
                if reader.chat is not None:
                    break
        if reader.chat is None and lines.waiting and left > 0:
            _feed(reader, lines.rest())
            reader.finish()
        self._source.rewind()
        if reader.chat is None:
            raise Refused(f"This looks like {self._format.what}, but no row of it is a message.")
        return reader.chat

    def _resumed(self, place: Place | None) -> Reader:
        reader = self._fresh()
        if place is not None:
            try:
                reader.restore(_unpacked(place.reader))
            except (ValueError, KeyError, TypeError, zlib.error) as error:
                raise Refused(_OTHER_VERSION) from error
        return reader

    def _skip(self, place: Place) -> bool:
        """Go past what was read before, where the file begins with just that. Otherwise every
        row is read, and the reader knows those it has seen."""
        self._begin(place.offset)
        left = place.offset
        while left and (chunk := self._source.read(min(limits.CHUNK, left))):
            self._digest.update(chunk)
            self.lines += chunk.count(b"\n")
            left -= len(chunk)
        if not left and self._digest.hexdigest() == place.digest:
            self._told = self._digest.copy()
            return True
        self._source.rewind()
        self.lines = 0
        self._begin(0)
        return False

    def _anew(self, stream: StreamHandle) -> Place:
        """Nothing of the chat is here, or not any more: the first place, behind what the stream
        once held."""
        seq = queries.stream_head(stream.stream)
        place = Place(seq, 0, sha256().hexdigest(), _packed(self._fresh()))
        writes.import_place_keep(stream=stream, session=self.session, place=place)
        return place

    def _has_own_file(self, agent: str) -> bool:
        """Whether a sub-agent's own file is among those dropped, or was read before."""
        known = self._own.get(agent)
        if known is None:
            stem = f"agent-{agent}.jsonl"
            known = stem in self._siblings or f"{stem}.gz" in self._siblings
            known = known or self._was_read(f"{self.session}:agent-{agent}")
            self._own[agent] = known
        return known

    def _was_read(self, session: str) -> bool:
        agent = self._stream.agent if self._stream is not None else None
        return agent is not None and queries.import_place(agent, session) is not None

    # The file.

    def _read(self, stream: StreamHandle, to: Submitting) -> None:
        while chunk := self._source.read(limits.CHUNK):
            self._hash(chunk)
            for line in self._lines.push(chunk):
                self._line(line, to)
            self._keep(stream, to)
        self._end(to)
        self._keep(stream, to)

    def _hash(self, chunk: bytes) -> None:
        end = chunk.rfind(b"\n") + 1
        if end:
            self._digest.update(chunk[:end])
            self._told = self._digest.copy()
        self._digest.update(chunk[end:])

    def _line(self, line: Line, to: Submitting) -> None:
        self.lines += 1
        self._last = line.data or b""
        before = self._reader.counts["unreadable"]
        events = _feed(self._reader, line)
        if self._reader.counts["unreadable"] != before:
            self.troubles.saw(self.lines, line.data, line.size)
        if events:
            self._barren = 0
            self._take(events, to)
            return
        self._barren += 1
        if self._barren > limits.BARREN:
            raise Broken(f"{limits.BARREN:,} lines in a row hold nothing of a session.")

    def _take(self, events: list[Event], to: Submitting) -> None:
        self.troubles.heard(events)
        to.take(events, self._rejected)

    def _rejected(self, event: Event, problem: Reject) -> None:
        self.troubles.rejected(self.lines, event, problem)

    def _end(self, to: Submitting) -> None:
        """A whole last line needs no newline; a torn one is left out, for a later file has it."""
        waiting = self._lines.peek() if self._lines.waiting else b""
        if waiting.strip(b"\x00 \t\r\n"):
            if _is_whole(waiting) or not waiting.strip(b"]} \t\r\n"):
                self._line(self._lines.rest(), to)
                self._told = self._digest
            else:
                self.troubles.torn(self.lines + 1, waiting)
        before = self._reader.counts["unreadable"]
        events = self._reader.finish()
        if self._reader.counts["unreadable"] != before:
            self.troubles.saw(self.lines, self._last, len(self._last))
        self._take(events, to)

    def _keep(self, stream: StreamHandle, to: Submitting) -> None:
        """Events first, then how far they reach: after a crash between the two the same events
        come again under the same numbers and are dropped."""
        to.flush()
        place = Place(to.seq, self._lines.consumed, self._told.hexdigest(), _packed(self._reader))
        writes.import_place_keep(stream=stream, session=self.session, place=place)
        self._progress(bytes_read=self._source.taken, **self.counts())


_READ_ELSEWHERE = (
    "This sub-agent stands already in its session, which was imported before: nothing was added."
)
_OTHER_VERSION = (
    "An earlier version of this server read this session, and what it kept cannot be continued: "
    "nothing was added. The chat is still there."
)


def _feed(reader: Reader, line: Line) -> list[Event]:
    return reader.skip(line.size) if line.data is None else reader.feed(line.data)


def _is_whole(line: bytes) -> bool:
    """Whether a last line that no newline ends is complete."""
    try:
        return isinstance(json.loads(line.strip(b"\x00 \t\r\n")), dict)
    except (ValueError, RecursionError):
        return False


def _window_of(model: str) -> int | None:
    found = table_window(model)
    return None if found is None else found.window


def _packed(reader: Reader) -> bytes:
    return zlib.compress(json.dumps(reader.snapshot(), separators=(",", ":")).encode(), 1)


def _unpacked(state: bytes) -> dict[str, Any]:
    found = json.loads(zlib.decompress(state))
    if not isinstance(found, dict):
        raise ValueError("not a reader's state")
    return found
