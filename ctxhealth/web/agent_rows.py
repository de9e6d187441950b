"""An agent as one line: what the database keeps and what its live connection says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ctxhealth.core.model import Connection
from ctxhealth.store.queries import AgentRow


@dataclass(frozen=True, slots=True)
class AgentLine:
    """``lag`` is the number of events that wait in the agent's outbox, None where unknown."""

    row: AgentRow
    connection: Connection
    lag: int | None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)


def agent_lines(rows: Iterable[AgentRow], lags: dict[int, int] | None = None) -> list[AgentLine]:
    known = lags or {}
    return [AgentLine(row, _connection(row), known.get(row.id)) for row in rows]


def _connection(row: AgentRow) -> Connection:
    if not row.connected:
        return Connection.OFFLINE
    return Connection.READ_ONLY if row.read_only else Connection.LIVE
