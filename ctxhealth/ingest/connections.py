"""Who is connected: one entry per agent, the newest connection.

The table is the seam for several workers later: pages ask it for what only memory knows (lag,
heartbeat, credits), everything durable stands in the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxhealth.ingest.link import Link


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionInfo:
    """One live connection. ``heard_s`` since its last frame; ``lag`` events not yet acked."""

    agent: int
    conn_no: int
    epoch: str
    sdk: str
    protocol: int
    late: bool
    heard_s: float
    lag: int
    inflight: int
    skew_ms: int | None
    gaps: int
    rejects: int
    duplicates: int
    read_only: bool
    commands: tuple[str, ...]


class ConnectionTable:
    """Changed on the loop alone; may be read from any thread."""

    def __init__(self) -> None:
        self._links: dict[int, Link] = {}
        self.accepted = 0
        self.refused = 0
        self.replaced = 0
        self.closed: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._links)

    def __iter__(self) -> Iterator[Link]:
        return iter(list(self._links.values()))

    def get(self, agent: int) -> Link | None:
        return self._links.get(agent)

    def info(self, agent: int) -> ConnectionInfo | None:
        link = self._links.get(agent)
        return link.info() if link else None

    def infos(self) -> list[ConnectionInfo]:
        return [link.info() for link in list(self._links.values())]

    def put(self, link: Link) -> Link | None:
        """Take on the newest connection; the one it replaces, if any."""
        older = self._links.get(link.stream.agent)
        if older is not None and older.conn_no > link.conn_no:
            return link
        self._links[link.stream.agent] = link
        self.replaced += older is not None
        return older

    def remove(self, link: Link) -> bool:
        """Forget a connection that ended; False where a newer one stands in its place."""
        if self._links.get(link.stream.agent) is not link:
            return False
        del self._links[link.stream.agent]
        return True

    def count_close(self, code: int) -> None:
        self.closed[code] = self.closed.get(code, 0) + 1
