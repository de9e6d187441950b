"""What readers of files that hold one chat share: lines, troubles and the saved place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, ClassVar

from ctxhealth.readers.base import Event
from ctxhealth.readers.objects import ObjectParser, Parsed
from ctxhealth.readers.seen import Seen
from ctxhealth.readers.timeline import Part, Timeline
from ctxhealth.readers.times import millis
from ctxhealth.readers.troubles import Troubles
from ctxhealth.readers.values import Row

# After so long no further row of anything is awaited.
LONG_MS = 20_000


class SingleChatReader(ABC):
    """See ``readers.base.Reader``. A format's own reader adds its rows and its parts.

    ``name`` stands in where no row names the session; ``chat`` overrides the session's id.
    ``window_of`` and ``elsewhere`` are for formats that need them and are not used here.
    """

    format: ClassVar[str]
    agent: ClassVar[str]
    runtime: ClassVar[str]
    version: ClassVar[int] = 1

    def __init__(
        self,
        name: str = "session",
        *,
        chat: str | None = None,
        window_of: Callable[[str], int | None] | None = None,
        elsewhere: Callable[[str], bool] | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.line = Timeline(chat or name)
        self._given = chat
        self._opened = False
        self._clock = 0
        self._objects = ObjectParser(self.is_row)
        self._seen = Seen()
        self._troubles = Troubles()

    @staticmethod
    @abstractmethod
    def is_row(value: Row) -> bool:
        """Whether an object is a row of its own, and not one inside a torn row."""

    @abstractmethod
    def take_row(self, row: Row, kind: str, ts: int) -> None:
        """One row of the chat, in the order of the file."""

    @abstractmethod
    def quiet(self, ts: int, idle_ms: int) -> None:
        """Nothing more came for ``idle_ms``."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Part]:
        """The pieces of the state that a snapshot holds, besides the timeline."""

    @property
    def chat(self) -> str | None:
        return self.line.chat if self._opened else None

    @property
    def waiting(self) -> bool:
        return bool(self.line.queue)

    def open(self, id: str | None, ts: int, **facts: Any) -> None:
        """The chat begins. ``id`` is the session's own; facts that are None are left out."""
        self._opened = True
        self.line.chat = self._given or (id or self.line.chat)[:200]
        self.line.add("chat.opened", ts, **facts)

    def feed(self, line: bytes) -> list[Event]:
        self.counts["lines"] += 1
        if self._objects.carry is None and self._is_replayed(line):
            self.counts["replayed"] += 1
            return []
        self._parsed(self._objects.parse(line))
        return self._take()

    def skip(self, size: int) -> list[Event]:
        self.counts["lines"] += 1
        self._trouble(f"a line of {size:,} bytes is longer than this reader holds")
        return self._take()

    def settle(self, idle_ms: int) -> list[Event]:
        if self._opened:
            self.quiet(self._clock, idle_ms)
        self._tell_troubles()
        return self._take()

    def finish(self) -> list[Event]:
        self._parsed(self._objects.flush())
        return self.settle(LONG_MS)

    def snapshot(self) -> dict[str, Any]:
        return {
            "format": self.format, "version": self.version, "counts": dict(self.counts),
            "chat": self.line.chat, "opened": self._opened, "clock": self._clock,
            "line": self.line.snapshot(), "seen": self._seen.snapshot(),
            "parts": {name: part.snapshot() for name, part in self.parts.items()},
            "carry": [self._objects.carry, self._objects.carried],
            "troubles": self._troubles.snapshot(),
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        if (state.get("format"), state.get("version")) != (self.format, self.version):
            raise ValueError("the saved place is of another reader or version")
        self.counts = Counter(state["counts"])
        self.line.chat = state["chat"]
        self._opened, self._clock = state["opened"], state["clock"]
        self.line.restore(state["line"])
        self._seen.restore(state["seen"])
        for name, part in self.parts.items():
            part.restore(state["parts"][name])
        self._objects.carry, self._objects.carried = state["carry"]
        self._troubles.restore(state["troubles"])

    def _is_replayed(self, line: bytes) -> bool:
        """The same bytes once more: every row carries the time at which it was written."""
        whole = line.strip()
        return whole.startswith(b"{") and self._seen.again(blake2b(whole).hexdigest())

    def _parsed(self, found: Parsed) -> None:
        for row in found.rows:
            kind = row.get("type")
            if isinstance(kind, str):
                self.counts["rows"] += 1
                self._clock = millis(row.get("timestamp")) or self._clock
                self.take_row(row, kind, self._clock)
            else:
                self._trouble("an object without a type")
        if found.repaired:
            self.counts["repaired"] += 1
        for problem in found.problems:
            self._trouble(problem)

    def _trouble(self, problem: str) -> None:
        self.counts["unreadable"] += 1
        self._troubles.add(self.counts["lines"], problem)
        if self._troubles.due:
            self._tell_troubles()

    def _tell_troubles(self) -> None:
        """Notes on unreadable lines; they wait until the chat is known."""
        if self._opened:
            for fields in self._troubles.take():
                self.line.add("note", self._clock, **fields)

    def _take(self) -> list[Event]:
        if self._opened and self._troubles.due:
            self._tell_troubles()
        if not self._opened:
            return []
        if self.line.crowded:
            self.quiet(self._clock, LONG_MS)
        events = self.line.take()
        for event in events:
            self.counts["events"] += 1
            self.counts[event["type"]] += 1
            self.counts[f"own {event['type']}"] += 1
        return events
