"""Many files through one sender: reads what changed, keeps few of them in memory."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

from ctxhealth.cli.errors import CannotSend
from ctxhealth.cli.followed import FollowedFile
from ctxhealth.cli.sender import Sender
from ctxhealth.readers.base import Event, Reader
from ctxhealth.readers.registry import FORMATS, HEAD_BYTES, readable, sniff

# Readers kept in memory; the others rest in the table of places.
MOST_ACTIVE = 64
# How long a file must be quiet before what waits in its reader is told, step by step.
_QUIET_MS = (500, 1_000, 2_000, 20_000)
MakeReader = Callable[[str, Callable[..., Reader]], Reader]


class NotASession(Exception):
    """``str`` says what the file is instead."""


class Follower:
    """``make`` gives a fresh reader for a path whose format is known to fit; ``only`` names the
    one format that is read where files of others may lie between them."""

    def __init__(self, sender: Sender, make: MakeReader, *, only: str | None = None) -> None:
        self._only = only
        self._sender = sender
        self._make = make
        self._active: OrderedDict[str, FollowedFile] = OrderedDict()
        self._changed_at: dict[str, float] = {}
        self._settled: dict[str, int] = {}
        self.known = sender.places.known()
        self.refused: dict[str, tuple[int, str]] = {}
        self.sent: Counter[str] = Counter()

    def is_new(self, path: str, size: int, mtime_ns: int) -> bool:
        """Whether the file differs from what was read of it."""
        refused = self.refused.get(path)
        if refused is not None:
            return refused[0] != mtime_ns
        return self.known.get(path) != (size, mtime_ns)

    def step(self, path: str, mtime_ns: int) -> bool:
        """Read and send one piece of a changed file; True while there is more."""
        try:
            file = self._open(path)
            events, more = file.read()
        except NotASession as problem:
            self.refused[path] = (mtime_ns, str(problem))
            self._active.pop(path, None)
            return False
        except OSError as error:
            self.refused[path] = (mtime_ns, error.strerror or str(error))
            self._active.pop(path, None)
            return False
        self.refused.pop(path, None)
        self._changed_at[path] = time.monotonic()
        self._settled.pop(path, None)
        self._send(file, events)
        return more

    def settle(self) -> None:
        """Tell what waited for rows that did not come; let files rest that are quiet."""
        now = time.monotonic()
        for path, file in list(self._active.items()):
            idle = int((now - self._changed_at.get(path, now)) * 1000)
            due = max((step for step in _QUIET_MS if idle >= step), default=0)
            if self._settled.get(path, 0) < due:
                self._settled[path] = due
                self._send(file, file.settle(due))
        while len(self._active) > MOST_ACTIVE:
            self._rest(next(iter(self._active)))

    def finish(self) -> None:
        """The end of every file that is open."""
        for file in list(self._active.values()):
            if file.reader is not None:
                self._send(file, file.finish())

    def files(self) -> Iterator[FollowedFile]:
        yield from self._active.values()

    def _rest(self, path: str) -> None:
        file = self._active.pop(path)
        self._changed_at.pop(path, None)
        self._settled.pop(path, None)
        self._send(file, file.settle(_QUIET_MS[-1]))

    def _open(self, path: str) -> FollowedFile:
        file = self._active.get(path)
        if file is None:
            file = FollowedFile(path, self._fresh)
            self._resume(file, path)
            self._active[path] = file
        self._active.move_to_end(path)
        return file

    def _resume(self, file: FollowedFile, path: str) -> None:
        place = self._sender.places.find(path)
        make = next((known.make for known in FORMATS if place and known.name == place.format), None)
        if place is None or make is None:
            return
        try:
            file.resume(place, self._make(path, make))
        except (ValueError, KeyError, TypeError) as error:
            raise CannotSend(
                f"What was sent of {path} was kept by another version of this program ({error}): "
                "give --again to send it anew."
            ) from error

    def _fresh(self, path: str, first: bytes) -> Reader:
        if len(first) >= 1024:
            with open(path, "rb") as file:
                first = file.read(HEAD_BYTES)
        found = sniff(first)
        if found is None:
            raise NotASession(f"is not a session file that can be read ({readable()})")
        if found.make is None:
            raise NotASession(f"is {found.what}; this version reads {readable()}")
        if self._only not in (None, found.name):
            raise NotASession(f"is {found.what}: `ctxhealth watch {found.name}` follows those")
        return self._make(path, found.make)

    def _send(self, file: FollowedFile, events: list[Event]) -> None:
        if file.reader is None:
            return
        place = file.place()
        self._sender.send(events, [place])
        self.known[file.path] = (place.size, place.mtime_ns)
        self.sent["events"] += len(events)
        for event in events:
            self.sent[str(event["type"])] += 1


def own_file(path: str) -> Callable[[str], bool]:
    """Whether a sub-agent of the session at ``path`` has a file of its own."""
    folder = Path(path).with_suffix("") / "subagents"
    return lambda agent: (folder / f"agent-{agent}.jsonl").is_file()
