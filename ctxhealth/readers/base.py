"""What every reader of session files is: bytes of lines in, wire events out.

A reader keeps no clock and reads no file. Its state is bounded whatever the file's length, and
can be saved as JSON between two lines and restored in another process.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, Protocol

# One wire event without its seq: ``type``, ``ts`` (ms since the epoch), ``chat`` and its fields.
Event = dict[str, Any]


class Reader(Protocol):
    """One session file. ``counts`` tallies lines, requests, compactions, unreadable and so on."""

    format: ClassVar[str]
    agent: ClassVar[str]
    runtime: ClassVar[str]
    counts: Counter[str]

    @property
    def chat(self) -> str | None:
        """The id of the file's own chat; None until a line told it."""
        ...

    @property
    def waiting(self) -> bool:
        """Whether something read is not told yet and ``settle`` would tell it."""
        ...

    def feed(self, line: bytes) -> list[Event]:
        """One complete line without its newline. Never raises."""
        ...

    def skip(self, size: int) -> list[Event]:
        """A line of ``size`` bytes was too long to be held."""
        ...

    def settle(self, idle_ms: int) -> list[Event]:
        """Nothing came for ``idle_ms``: what waited for its other half is told as it stands."""
        ...

    def finish(self) -> list[Event]:
        """The end of a file that is not followed."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON can hold it."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot of the same version. Raises ValueError for any other."""
        ...
