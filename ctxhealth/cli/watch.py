"""``ctxhealth watch PRODUCT [DIR]``: a whole tree of sessions, while they grow."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ctxhealth.cli.console import Console, left_over
from ctxhealth.cli.errors import CannotSend
from ctxhealth.cli.follower import Follower, own_file
from ctxhealth.cli.identity import of_folder
from ctxhealth.cli.products import FOLDERS
from ctxhealth.cli.sender import Sender, server_of
from ctxhealth.cli.windows import window_of
from ctxhealth.core.wording import plural
from ctxhealth.readers.base import Reader

# Files that changed lately are looked at often, the tree as a whole as often as it is cheap.
_HOT_S = 0.25
_HOT_FOR_NS = 10 * 60 * 1_000_000_000
_SCAN_LEAST_S, _SCAN_MOST_S = 2.0, 30.0
_SCAN_SHARE = 20
_MOST_HOT = 500
_DEEPEST = 8


class Found(NamedTuple):
    path: str
    size: int
    mtime_ns: int


def watch(options: Namespace) -> int:
    """Follow the tree until interrupted, or once. Returns the exit code."""
    folder = (options.folder or FOLDERS[options.product]()).expanduser()
    if not folder.is_dir():
        raise CannotSend(f"There is no folder {folder}.")
    folder = folder.resolve()
    console = Console(quiet=options.quiet)
    server_of(options)
    sender = Sender(options, of_folder(options, folder), console)
    run = _Watch(folder, options, sender, console)
    try:
        run.scan()
        console.say(f"{plural(run.files, 'session')} read. {sender.url}/")
        console.say(f"Agent: {sender.reporter.agent}.")
        while not options.once:
            run.round()
        run.finish()
        sender.drain()
    except KeyboardInterrupt:
        pass
    except BaseException:
        sender.close()
        raise
    waiting = sender.close()
    console.say(f"Sent {plural(run.events, 'event')}.")
    if waiting:
        console.warn(left_over(waiting))
    return 0


class _Watch:
    def __init__(self, folder: Path, options: Namespace, sender: Sender, console: Console) -> None:
        self._folder = folder
        self._sender = sender
        self._console = console
        self._follower = Follower(sender, self._reader, only=options.product)
        self._hot: list[str] = []
        self._next_scan = 0.0
        days = options.since_days
        self._oldest_ns = 0 if days is None else time.time_ns() - int(days * 86_400e9)
        self.files = 0

    @property
    def events(self) -> int:
        return self._follower.sent["events"]

    def round(self) -> None:
        """One look at the files that changed lately, and at the tree when it is time."""
        if time.monotonic() >= self._next_scan:
            self.scan()
        elif not self._read([found for found in map(_look, self._hot) if found is not None]):
            self._sender.check()
            time.sleep(_HOT_S)
        self._follower.settle()

    def scan(self) -> None:
        """Find every session in the tree and read those that changed, newest first."""
        started = time.monotonic()
        changed: list[Found] = []
        hot: list[tuple[int, str]] = []
        lately = time.time_ns() - _HOT_FOR_NS
        self.files = 0
        for found in sessions(self._folder):
            if found.mtime_ns < self._oldest_ns:
                continue
            self.files += 1
            if found.mtime_ns >= lately:
                hot.append((found.mtime_ns, found.path))
            if found.size and self._follower.is_new(*found):
                changed.append(found)
        took = time.monotonic() - started
        self._hot = [path for _, path in sorted(hot, reverse=True)[:_MOST_HOT]]
        # A parent before its sub-agents, so that they find it.
        changed.sort(key=lambda found: (found.path.count(os.sep), -found.mtime_ns))
        self._read(changed)
        pause = min(max(_SCAN_LEAST_S, took * _SCAN_SHARE), _SCAN_MOST_S)
        self._next_scan = time.monotonic() + pause

    def finish(self) -> None:
        self._follower.finish()

    def _read(self, files: list[Found]) -> bool:
        read = False
        for path, size, mtime_ns in files:
            if not self._follower.is_new(path, size, mtime_ns):
                continue
            read = True
            while self._follower.step(path, mtime_ns):
                pass
            self._follower.settle()
            self._console.progress(f"{plural(self.events, 'event')} sent")
        return read

    def _reader(self, path: str, make: Callable[..., Reader]) -> Reader:
        return make(Path(path).stem, window_of=window_of(), elsewhere=own_file(path))


def sessions(folder: Path) -> Iterator[Found]:
    """The session files of the tree with size and time; what cannot be read is left out."""
    waiting = [(str(folder), 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.name.endswith(".jsonl") and entry.is_file():
                        status = entry.stat()
                        yield Found(entry.path, status.st_size, status.st_mtime_ns)
                    elif depth < _DEEPEST and entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
        except OSError:
            continue


def _look(path: str) -> Found | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return Found(path, status.st_size, status.st_mtime_ns)
