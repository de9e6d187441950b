"""Events on their way: numbered without holes, kept until acked, and a while longer.

One SQLite file (or memory) holds the stream ``(agent, epoch)``. ``seq`` is given here. Acked
events stay for the replay window, so that a server restored from a backup can be fed again.
What finds no room is counted and said by a ``gap`` event at the next seq.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .bodies import encoded
from .database import Database, set_meta
from .epochs import new_epoch

Statement = tuple[str, tuple[Any, ...]]
Row = tuple[int, int, bytes]
_INSERT = "INSERT INTO events(seq, at_ms, body) VALUES (?, ?, ?)"
# What `"seq":n,` and a comma add to a body in a frame.
SEQ_BYTES = 32


@dataclass(frozen=True)
class Bounds:
    """Room for events that no server has acked yet, and how long acked ones are kept."""

    max_events: int = 50_000
    max_bytes: int = 32 * 1024 * 1024
    replay_ms: int = 24 * 3600 * 1000
    replay_bytes: int = 50 * 1024 * 1024


class Outbox:
    """All methods are safe from any thread; each is at most one short transaction.

    Raises sqlite3.Error where the file cannot be written; nothing is half done then.
    """

    def __init__(self, path: str | None = None, bounds: Bounds | None = None) -> None:
        """``path`` None is memory. Raises ``database.InUse`` if another process holds it."""
        self.bounds = bounds or Bounds()
        self.lock = threading.RLock()
        self.path = path
        self.db = Database(path)
        self.epoch = self.db.meta("epoch") or self._first_epoch()
        self.next_seq = int(self.db.meta("next_seq") or 1)
        self.acked = int(self.db.meta("acked") or 0)
        # The highest seq ever acked: after a rewind the room is still that of new events.
        self.high = int(self.db.meta("high") or 0)
        self.incarnation = self.db.meta("incarnation")
        # The highest seq that may have left: an earlier process sent nothing it had not stored.
        self.sent_high = self.next_seq - 1
        self._rewound_at = int(self.db.meta("rewound_at") or 0)
        self._owed = int(self.db.meta("owed") or 0)
        self._owed_why = self.db.meta("owed_why") or "outbox_full"
        self._count = self._bytes = self._kept = 0
        self._recount()

    # -- in

    def append(
        self,
        bodies: Sequence[bytes],
        at_ms: int,
        *,
        control: bool = False,
        durable: bool = False,
        also: Sequence[Statement] = (),
    ) -> list[int | None]:
        """Number and store ``bodies``; the seq of each, or None where there was no room.

        ``control`` events (command progress) are always taken. ``durable`` syncs to the disk
        before returning. ``also`` runs in the same transaction.
        """
        with self.lock:
            rows, seqs, owed, why = self._numbered(bodies, at_ms, control)
            next_seq = self.next_seq + len(rows)
            with self.db.transaction(durable=durable) as db:
                db.executemany(_INSERT, rows)
                for sql, values in also:
                    db.execute(sql, values)
                set_meta(db, next_seq=next_seq, owed=owed, owed_why=why)
            self._count += len(rows)
            self._bytes += sum(len(row[2]) for row in rows)
            self.next_seq, self._owed, self._owed_why = next_seq, owed, why
            return seqs

    def owe(self, count: int, reason: str) -> None:
        """``count`` events were lost before they came here; the next append says so."""
        with self.lock:
            self._owed += count
            self._owed_why = reason

    def settle(self, at_ms: int) -> None:
        """Say what was lost as soon as there is room, also when no new event comes."""
        if self._owed:
            self.append((), at_ms)

    def _numbered(
        self, bodies: Sequence[bytes], at_ms: int, control: bool
    ) -> tuple[list[Row], list[int | None], int, str]:
        rows: list[Row] = []
        seqs: list[int | None] = []
        owed, why, size = self._owed, self._owed_why, 0
        for raw in bodies:
            if not control and not self._has_room(len(rows), size + len(raw), owed > 0):
                owed, why = owed + 1, "outbox_full"
                seqs.append(None)
                continue
            if owed and not control:
                rows.append((self.next_seq + len(rows), at_ms, _gap(owed, why, at_ms)))
                owed = 0
            seqs.append(self.next_seq + len(rows))
            rows.append((self.next_seq + len(rows), at_ms, raw))
            size += len(raw)
        if owed and not bodies and self._has_room(0, 0, True):
            rows.append((self.next_seq, at_ms, _gap(owed, why, at_ms)))
            owed = 0
        return rows, seqs, owed, why

    def _has_room(self, more: int, more_bytes: int, was_full: bool) -> bool:
        # Once full, wait for a tenth to be free: one gap for a burst, not one for each event.
        share = 0.9 if was_full else 1.0
        few = self._count + more < self.bounds.max_events * share
        return few and self._bytes + more_bytes <= self.bounds.max_bytes * share

    # -- out

    def read(self, start: int, max_events: int, max_bytes: int) -> list[tuple[int, bytes]]:
        """At most ``max_events`` from seq ``start`` on, at least one if there is one.

        Seqs that are no longer held come as ``gap`` events of one each, the same every time.
        """
        with self.lock:
            end = min(start + max_events, self.next_seq)
            held = dict(
                self.db.rows(
                    "SELECT seq, body FROM events WHERE seq >= ? AND seq < ?", (start, end)
                )
            )
        # The same bytes on every resend: other content under the same seq would be a conflict.
        missing = _gap(1, "restore", self._rewound_at)
        found: list[tuple[int, bytes]] = []
        size = 0
        for seq in range(start, end):
            raw = held.get(seq, missing)
            size += len(raw) + SEQ_BYTES
            if size > max_bytes and found:
                break
            found.append((seq, raw))
        return found

    def ack(self, upto: int, now_ms: int) -> None:
        """Everything up to ``upto`` is durable on the server; what is past its time goes."""
        with self.lock:
            upto = min(upto, self.next_seq - 1)
            if upto <= self.acked:
                return
            high = max(upto, self.high)
            with self.db.transaction() as db:
                set_meta(db, acked=upto, high=high)
            count, size = self.db.rows(
                "SELECT count(*), coalesce(sum(length(body)), 0) FROM events"
                " WHERE seq > ? AND seq <= ?",
                (self.high, upto),
            )[0]
            self._count, self._bytes = self._count - count, self._bytes - size
            self._kept += size
            self.acked, self.high = upto, high
            self._prune(now_ms)

    def rewind(self, acked: int, now_ms: int) -> None:
        """The server forgot what it had acked: go back to ``acked``."""
        with self.lock:
            with self.db.transaction() as db:
                set_meta(db, acked=acked, rewound_at=now_ms)
            self.acked, self._rewound_at = acked, now_ms

    def remember(self, incarnation: str) -> None:
        """Which life of the server's database the acks belong to."""
        with self.lock, self.db.transaction() as db:
            set_meta(db, incarnation=incarnation)
            self.incarnation = incarnation

    def _prune(self, now_ms: int) -> None:
        held, cut = self._kept, None
        rows = self.db.rows(
            "SELECT seq, at_ms, length(body) FROM events WHERE seq <= ? ORDER BY seq LIMIT 2000",
            (self.acked,),
        )
        for seq, at_ms, size in rows:
            if held <= self.bounds.replay_bytes and at_ms >= now_ms - self.bounds.replay_ms:
                break
            held, cut = held - size, seq
        if cut is not None:
            with self.db.transaction() as db:
                db.execute("DELETE FROM events WHERE seq <= ?", (cut,))
            self._kept = held

    # -- repairs

    def skip_to(self, server_acked: int) -> None:
        """The server holds more than ever left here: this file lost its tail (power, backup).

        What has not left yet was never seen there, and moves behind what the server holds.
        """
        with self.lock:
            delta = server_acked - self.sent_high
            with self.db.transaction() as db:
                _renumber(db, self.sent_high + 1, delta)
                set_meta(db, next_seq=self.next_seq + delta, acked=server_acked, high=server_acked)
            self.next_seq += delta
            self.sent_high = server_acked
            self.acked = self.high = server_acked
            self._recount()

    def restart(self, epoch: str, at_ms: int, why: str) -> None:
        """A new stream: a note with ``why``, then the unacked events in their order."""
        note = encoded({"type": "note", "ts": at_ms, "level": "warning", "text": why})
        with self.lock:
            with self.db.transaction() as db:
                db.execute("DELETE FROM events WHERE seq <= ?", (self.acked,))
                first = int(self.db.one("SELECT min(seq) FROM events") or self.next_seq)
                next_seq = self.next_seq - first + 2
                _renumber(db, 0, 2 - first)
                db.execute(_INSERT, (1, at_ms, note))
                db.execute("DELETE FROM fences")
                set_meta(db, epoch=epoch, next_seq=next_seq, acked=0, high=0)
            self.epoch, self.next_seq, self.acked, self.high = epoch, next_seq, 0, 0
            self.sent_high = 0
            self._recount()

    def replace(self, seq: int, at_ms: int, why: str) -> None:
        """Put a gap where an event stands that the server will not take even alone."""
        with self.lock:
            with self.db.transaction() as db:
                db.execute("UPDATE events SET body = ? WHERE seq = ?", (_gap(1, why, at_ms), seq))
            self._recount()

    # -- the rest

    @property
    def unacked(self) -> int:
        return self.next_seq - 1 - self.acked

    def close(self) -> None:
        with self.lock:
            self.db.close()

    def _first_epoch(self) -> str:
        epoch = new_epoch()
        with self.db.transaction() as db:
            set_meta(db, epoch=epoch)
        return epoch

    def _recount(self) -> None:
        sums = "SELECT count(*), coalesce(sum(length(body)), 0) FROM events WHERE seq"
        self._count, self._bytes = self.db.rows(f"{sums} > ?", (self.high,))[0]
        self._kept = self.db.rows(f"{sums} <= ?", (self.high,))[0][1]


def _gap(count: int, why: str, ts: int) -> bytes:
    return encoded({"type": "gap", "ts": ts, "count": count, "reason": why})


def _renumber(db: Any, start: int, delta: int) -> None:
    # In two steps, as a primary key is checked row by row.
    db.execute("UPDATE events SET seq = -seq WHERE seq >= ?", (start,))
    db.execute("UPDATE events SET seq = -seq + ? WHERE seq < 0", (delta,))
