"""An agent as one line: what the database keeps and what its live connection says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ctxhealth.core.model import Connection
from ctxhealth.store.queries import AgentRow


class LiveConnection(Protocol):
    """What only the process that holds the socket knows."""

    @property
    def agent(self) -> int: ...
    @property
    def lag(self) -> int: ...
    @property
    def late(self) -> bool: ...


Connections = Callable[[], Iterable[LiveConnection]]
_sources: list[Connections] = []


def connections_from(source: Connections | None) -> None:
    """Set by the composition at start, and taken back at stop."""
    _sources[:] = [source] if source else []


@dataclass(frozen=True, slots=True)
class AgentLine:
    """``lag`` is the number of events the agent has not seen acknowledged, None where unknown."""

    row: AgentRow
    connection: Connection
    lag: int | None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)


def agent_lines(rows: Iterable[AgentRow]) -> list[AgentLine]:
    live = {known.agent: known for source in _sources for known in source()}
    return [_line(row, live) for row in rows]


def _line(row: AgentRow, live: Mapping[int, LiveConnection]) -> AgentLine:
    known = live.get(row.id) if row.connected else None
    return AgentLine(row, _connection(row, known), known.lag if known else None)


def _connection(row: AgentRow, known: LiveConnection | None) -> Connection:
    if row.imported:
        return Connection.IMPORTED
    if row.ended:
        return Connection.CLOSED
    if not row.connected:
        # Who only ever posted has no connection that could be missed.
        return Connection.POSTS if row.connected_at is None else Connection.OFFLINE
    if known is not None and known.late:
        return Connection.LATE
    return Connection.READ_ONLY if row.read_only else Connection.LIVE
