"""Rows of the log and of the streams, in as few statements as a batch allows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.models import F

from ctxhealth.store import bulk
from ctxhealth.store.models import Agent, Event

IN_LIST = 500
WIDTH = 10
_INSERT = (
    "INSERT INTO store_event"
    " (chat_id, chat_seq, stream_id, seq, type, ts, received, at, body, tombstone)"
)


def chunks(values: Sequence[Any], size: int = IN_LIST) -> Iterable[Sequence[Any]]:
    """``values`` in pieces that fit into one IN list."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def marks(values: Sequence[Any]) -> str:
    """Placeholders for an IN list."""
    return ", ".join(["%s"] * len(values))


class EventRows:
    """Events that wait for their one statement.

    ``values`` holds their columns one after the other, in the order of the INSERT; of events of
    the server itself ``stream`` and ``seq`` are None.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []

    def flush(self) -> None:
        values, self.values = self.values, []
        bulk.insert_values(_INSERT, WIDTH, values)


class Heads:
    """Heads and fences of the streams a transaction writes to, read once and written once."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, int, int]] = {}
        self._moved: dict[int, int] = {}

    def read(self, streams: Iterable[int]) -> None:
        """Fetch (and on PostgreSQL lock) the heads that are not known yet."""
        missing = sorted({stream for stream in streams if stream not in self._found})
        lock = " FOR UPDATE OF s" if connection.vendor == "postgresql" else ""
        with connection.cursor() as cursor:
            for some in chunks(missing):
                cursor.execute(
                    "SELECT s.id, s.head, s.agent_id, a.conn_no FROM store_stream s"
                    f" JOIN store_agent a ON a.id = s.agent_id WHERE s.id IN ({marks(some)})"
                    f" ORDER BY s.id{lock}",
                    list(some),
                )
                for pk, head, agent, conn_no in cursor.fetchall():
                    self._found[pk] = (head, agent, conn_no)

    def of(self, stream: int) -> tuple[int, int]:
        """(head, conn_no of the newest connection). Raises KeyError for an unknown stream."""
        if stream not in self._found:
            self.read([stream])
        head, _, conn_no = self._found[stream]
        return head, conn_no

    def advance(self, stream: int, head: int) -> None:
        _, agent, conn_no = self._found[stream]
        self._found[stream] = (head, agent, conn_no)
        self._moved[stream] = head

    def fence(self, agent: int, conn_no: int) -> None:
        """A newer connection of this agent was taken on in this transaction."""
        for stream, (head, owner, _) in list(self._found.items()):
            if owner == agent:
                self._found[stream] = (head, owner, conn_no)

    def write(self, now: int) -> None:
        moved, self._moved = self._moved, {}
        if moved:
            with connection.cursor() as cursor:
                cursor.executemany(
                    "UPDATE store_stream SET head = %s, last_at = %s WHERE id = %s",
                    [(head, now, stream) for stream, head in moved.items()],
                )


def stored_bodies(stream: int, seqs: Sequence[int]) -> dict[int, str]:
    """Bodies of these events as stored; tombstones are left out."""
    found: dict[int, str] = {}
    for some in chunks(seqs):
        rows = Event.objects.filter(stream_id=stream, seq__in=list(some), tombstone=False)
        found.update((seq or 0, body) for seq, body in rows.values_list("seq", "body"))
    return found


def agent_counters(
    agent: int, *, duplicates: int = 0, conflicts: int = 0, rejects: int = 0, gaps: int = 0
) -> None:
    Agent.objects.filter(id=agent).update(
        duplicates=F("duplicates") + duplicates,
        conflicts=F("conflicts") + conflicts,
        rejects=F("rejects") + rejects,
        gaps=F("gaps") + gaps,
    )
