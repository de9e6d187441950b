"""``ctxhealth tail FILE``: one session and its sub-agents, whole or while it grows."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from ctxhealth.cli.console import Console, left_over
from ctxhealth.cli.errors import INTERRUPTED, CannotSend
from ctxhealth.cli.follower import Follower, own_file
from ctxhealth.cli.identity import of_session
from ctxhealth.cli.products import DEFAULT, product_of
from ctxhealth.cli.sender import Sender, server_of
from ctxhealth.cli.windows import window_of
from ctxhealth.core.wording import plural
from ctxhealth.readers.base import Reader

_POLL_S = 0.25
_DISCOVER_S = 2.0


def tail(options: Namespace) -> int:
    """Send the file. Returns the exit code; raises CannotSend with the reason it cannot."""
    path = _checked(options.file)
    options.product = product_of(path)
    console = Console(quiet=options.quiet)
    server_of(options)
    sender = Sender(options, of_session(options, path), console)
    run = _Tail(path, options, sender, console)
    try:
        run.whole()
        if options.follow:
            console.say(f"Following {path.name}; Ctrl-C ends.")
            run.follow()
        sender.drain()
    except KeyboardInterrupt:
        run.summary()
        waiting = sender.close()
        if waiting:
            console.warn(left_over(waiting))
        return 0 if options.follow else INTERRUPTED
    except BaseException:
        sender.close()
        raise
    run.summary()
    sender.close()
    return 0


class _Tail:
    def __init__(self, path: Path, options: Namespace, sender: Sender, console: Console) -> None:
        self._path = path
        self._options = options
        self._sender = sender
        self._console = console
        self._follower = Follower(sender, self._reader)
        self._main = str(path)
        self._side: list[str] = []
        self._looked = 0.0

    def whole(self) -> None:
        """What is in the file now, and in those of its sub-agents."""
        while not self._pass() and self._options.follow and not self._path.stat().st_size:
            time.sleep(_POLL_S)
        if not self._options.follow:
            self._follower.finish()

    def follow(self) -> None:
        """What comes; until interrupted."""
        while True:
            found = self._pass()
            # One file that never rests keeps no other waiting.
            self._follower.settle()
            if not found:
                self._sender.check()
                time.sleep(_POLL_S)

    def summary(self) -> None:
        """What was sent, what could not be read, where it is shown."""
        reader = next((f.reader for f in self._follower.files() if f.path == self._main), None)
        sent = self._follower.sent
        if reader is None:
            self._console.say("Nothing new: all of it was sent before.")
            reader = self._restored()
        else:
            self._console.say(f"Sent {plural(sent['events'], 'event')}: {_told(reader.counts)}.")
            subagents = reader.counts["chat.opened"] - 1 + len(self._side)
            if subagents > 0:
                self._console.say(f"Sub-agents: {subagents:,}.")
        if reader is None or reader.chat is None:
            return
        torn = sum(file.torn for file in self._follower.files())
        if torn:
            said = plural(torn, "byte")
            self._console.say(f"The last line is not finished ({said}): it waits.")
        self._console.say(f"Agent: {self._sender.reporter.agent}.")
        self._console.say(self._sender.pages.of(reader.chat))

    def _pass(self) -> bool:
        """Read every changed file to its end; True where there was something."""
        found = False
        for path in self._paths():
            try:
                status = os.stat(path)
            except OSError:
                continue
            if not status.st_size or not self._follower.is_new(
                path, status.st_size, status.st_mtime_ns
            ):
                continue
            found = True
            while self._follower.step(path, status.st_mtime_ns):
                self._progress(status.st_size)
            refused = self._follower.refused.get(path)
            if refused is not None and path == self._main:
                raise CannotSend(f"{self._path} {refused[1]}.")
        return found

    def _paths(self) -> Iterator[str]:
        yield self._main
        now = time.monotonic()
        if not self._options.no_subagents and now >= self._looked + _DISCOVER_S:
            self._looked = now
            folder = self._path.with_suffix("") / "subagents"
            self._side = sorted(map(str, folder.glob("agent-*.jsonl")))
        yield from self._side

    def _progress(self, size: int) -> None:
        done = next((f.position for f in self._follower.files() if f.path == self._main), 0)
        sent = self._follower.sent["events"]
        self._console.progress(
            f"{done / 1e6:,.1f} of {size / 1e6:,.1f} MB read, {plural(sent, 'event')} sent"
        )

    def _reader(self, path: str, make: Callable[..., Reader]) -> Reader:
        alone = self._options.no_subagents
        return make(
            Path(path).stem,
            chat=self._options.chat if path == self._main else None,
            window_of=window_of(),
            elsewhere=None if alone or path != self._main else own_file(path),
        )

    def _restored(self) -> Reader | None:
        """The reader of a file of which nothing new was there, for its chat's id."""
        place = self._sender.places.find(self._main)
        if place is None:
            return None
        from ctxhealth.readers.registry import FORMATS

        make = next((known.make for known in FORMATS if known.name == place.format), None)
        if make is None:
            return None
        reader = self._reader(self._main, make)
        reader.restore(place.reader_state())
        return reader


def _checked(path: Path) -> Path:
    if path.is_dir():
        raise CannotSend(f"{path} is a folder: `ctxhealth watch {DEFAULT} {path}` follows it.")
    try:
        with open(path, "rb"):
            return path.resolve()
    except FileNotFoundError as error:
        raise CannotSend(f"There is no file {path}.") from error
    except OSError as error:
        raise CannotSend(f"{path} cannot be read: {error.strerror}.") from error


def _told(counts: Counter[str]) -> str:
    """The session's own counts; those of its sub-agents are theirs."""
    synthetic = counts["own synthetic"]
    requests = plural(counts["own request.sent"] + synthetic, "request")
    if synthetic:
        requests += f" ({synthetic:,} answered by the program itself)"
    parts = [requests, plural(counts["own compaction.finished"], "compaction")]
    if counts["replayed"]:
        parts.append(f"{plural(counts['replayed'], 'row')} that the file holds twice")
    parts.append(plural(counts["unreadable"], "unreadable line"))
    return ", ".join(parts)
