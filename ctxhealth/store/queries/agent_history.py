"""One agent's past: its connections, and what of its events was refused."""

from __future__ import annotations

from dataclasses import dataclass

from ctxhealth.store.models import AgentConnection, Event, Stream
from ctxhealth.store.queries.events import EventRow, event_row

# Refused events are looked for among so many newest ones of the agent's newest streams.
LOOKED_AT = 20_000
STREAMS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionRow:
    """``ended_at`` None: it is open."""

    conn_no: int
    runtime_version: str
    sdk: str
    epoch: str
    skew_ms: int | None
    connected_at: int
    ended_at: int | None
    reason: str

    @property
    def lasted_ms(self) -> int | None:
        return None if self.ended_at is None else max(0, self.ended_at - self.connected_at)


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamRow:
    """One epoch: each start of an agent without a kept outbox begins a new one."""

    epoch: str
    events: int
    created_at: int
    last_at: int | None


def agent_connections(agent_id: int, limit: int = 50) -> list[ConnectionRow]:
    """Newest first."""
    rows = AgentConnection.objects.filter(agent_id=agent_id).order_by("-conn_no")[:limit]
    return [
        ConnectionRow(
            conn_no=row.conn_no,
            runtime_version=row.runtime_version,
            sdk=row.sdk,
            epoch=row.epoch,
            skew_ms=row.skew_ms,
            connected_at=row.connected_at,
            ended_at=row.ended_at,
            reason=row.reason,
        )
        for row in rows
    ]


def agent_streams(agent_id: int, limit: int = 20) -> list[StreamRow]:
    """Newest first."""
    rows = Stream.objects.filter(agent_id=agent_id).order_by("-id")[:limit]
    return [
        StreamRow(epoch=row.epoch, events=row.head, created_at=row.created_at, last_at=row.last_at)
        for row in rows
    ]


def agent_rejects(agent_id: int, limit: int = 20) -> list[EventRow]:
    """The newest tombstones among the agent's newest events, newest first."""
    found: list[EventRow] = []
    for stream in Stream.objects.filter(agent_id=agent_id).order_by("-id")[:STREAMS]:
        rows = Event.objects.filter(
            stream_id=stream.pk, seq__gt=stream.head - LOOKED_AT, tombstone=True
        )
        found += [event_row(row) for row in rows.order_by("-seq")[: limit - len(found)]]
        if len(found) >= limit:
            break
    return found
