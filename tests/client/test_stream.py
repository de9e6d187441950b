"""A state machine over outbox, send window and a server that fails in every way it may.

What the server says is durable is stored, once, in order, without holes; what was lost on
purpose is said by gaps; and the agent gets everything it accepted through, whatever happened.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ctxhealth.client.connection import events_frame
from ctxhealth.client.limits import Limits
from ctxhealth.client.outbox import Bounds, Outbox
from ctxhealth.client.stream import SendWindow

LIMITS = Limits(batch=4, inflight=10, rate=1_000_000)
BOUNDS = Bounds(max_events=30, max_bytes=4_000, replay_ms=10**12, replay_bytes=600)


class Delivery(RuleBasedStateMachine):
    """``stored``: what the server made durable. ``wire``: frames on their way to it."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self.folder.name) / "outbox")
        self.outbox = Outbox(self.path, BOUNDS)
        self.stored: list[dict[str, Any]] = []
        self.accepted: list[int] = []
        self.dropped = 0
        self.forgotten = 0
        self.promised = 0
        self.called = 0
        self.clock = 0
        self.window: SendWindow | None = None
        self.wire: list[bytes] = []
        self.acks: list[int] = []

    def teardown(self) -> None:
        if hasattr(self, "outbox"):
            self._finish()
            self.outbox.close()
            self.folder.cleanup()

    # -- the host

    @rule(count=st.integers(1, 12), size=st.integers(0, 60))
    def report(self, count: int, size: int) -> None:
        numbers = range(self.called, self.called + count)
        self.called += count
        bodies = [json.dumps({"n": n, "pad": "x" * size}).encode() for n in numbers]
        for number, seq in zip(numbers, self.outbox.append(bodies, self._tick()), strict=True):
            if seq is None:
                self.dropped += 1
            else:
                self.accepted.append(number)

    @rule()
    def restart(self) -> None:
        self.window = None
        self.outbox.close()
        self.outbox = Outbox(self.path, BOUNDS)

    # -- the connection

    @rule()
    def connect(self) -> None:
        """Welcome, and the outbox brought to where the server stands."""
        acked = len(self.stored)
        self.wire, self.acks = [], []
        if acked < self.outbox.acked:
            self.outbox.rewind(acked, self._tick())
        else:
            self.outbox.ack(acked, self._tick())
        self.window = SendWindow(acked, LIMITS, 0.0)

    @precondition(lambda self: self.window is not None)
    @rule()
    def send(self) -> None:
        assert self.window is not None
        room = self.window.room(0.0)
        batch = self.outbox.read(self.window.sent + 1, room, 2_000) if room else []
        if batch:
            assert batch[0][0] == self.window.sent + 1
            self.window.record(len(batch), sum(len(raw) for _, raw in batch), 0.0)
            self.outbox.sent_high = max(self.outbox.sent_high, batch[-1][0])
            self.wire.append(events_frame(self.outbox.epoch, batch))
        assert self.window.sent - self.window.acked <= LIMITS.inflight

    @precondition(lambda self: self.wire)
    @rule(lost=st.booleans())
    def arrive(self, lost: bool) -> None:
        raw = self.wire.pop(0)
        if lost:
            return
        for event in json.loads(raw)["events"]:
            if event["seq"] > len(self.stored) + 1:
                self._ask_again()
                return
            if event["seq"] == len(self.stored) + 1:
                self.stored.append(event)
            else:
                assert self.stored[event["seq"] - 1] == event, "other content under one seq"
        self.acks.append(len(self.stored))

    def _ask_again(self) -> None:
        if self.window is not None:
            self.window.resend(len(self.stored) + 1)

    @precondition(lambda self: self.acks and self.window is not None)
    @rule(lost=st.booleans())
    def ack(self, lost: bool) -> None:
        upto = self.acks.pop(0)
        if not lost:
            self.promised = max(self.promised, upto)
            assert self.window is not None
            if self.window.ack(upto, 0.0):
                self.outbox.ack(upto, self._tick())

    @precondition(lambda self: self.window is not None)
    @rule()
    def busy(self) -> None:
        assert self.window is not None
        self.window.busy(0.0)

    @rule()
    def lose_connection(self) -> None:
        self.window, self.wire, self.acks = None, [], []

    @precondition(lambda self: self.stored)
    @rule(data=st.data())
    def restore_from_backup(self, data: st.DataObject) -> None:
        keep = data.draw(st.integers(0, len(self.stored)), label="kept by the backup")
        self.stored = self.stored[:keep]
        self.promised = min(self.promised, keep)
        self.lose_connection()

    # -- what must hold

    @invariant()
    def no_holes(self) -> None:
        if hasattr(self, "stored"):
            assert [event["seq"] for event in self.stored] == list(range(1, len(self.stored) + 1))

    @invariant()
    def an_ack_is_a_promise(self) -> None:
        if hasattr(self, "stored"):
            assert self.promised <= len(self.stored)
            assert self.outbox.acked <= self.outbox.next_seq - 1

    @invariant()
    def bounded(self) -> None:
        if hasattr(self, "outbox"):
            held = self.outbox.db.rows("SELECT count(*), coalesce(sum(length(body)),0) FROM events")
            assert held[0][0] <= BOUNDS.max_events + 60
            unacked = self.outbox.db.rows(
                "SELECT count(*) FROM events WHERE seq > ?", (self.outbox.high,)
            )
            # One gap event may stand beside a full outbox.
            assert unacked[0][0] <= BOUNDS.max_events + 1

    def _finish(self) -> None:
        """With a server that works, everything gets through."""
        for _ in range(400):
            self.connect()
            self.outbox.settle(self._tick())
            self.send()
            while self.wire:
                self.arrive(lost=False)
            while self.acks:
                self.ack(lost=False)
            if not self.outbox.unacked and not self.outbox._owed:
                break
        assert self.outbox.unacked == 0
        numbers = [event["n"] for event in self.stored if "n" in event]
        gaps = [event for event in self.stored if event.get("type") == "gap"]
        lost = sum(gap["count"] for gap in gaps if gap["reason"] == "outbox_full")
        # A restore may have taken gap events with it, as it takes any other.
        restored = sum(gap["count"] for gap in gaps if gap["reason"] == "restore")
        assert numbers == sorted(set(numbers)) and set(numbers) <= set(self.accepted)
        if not restored:
            assert numbers == self.accepted and lost == self.dropped
        assert len(self.accepted) - len(numbers) <= restored

    def _tick(self) -> int:
        self.clock += 1
        return self.clock


Delivery.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestDelivery = Delivery.TestCase


def test_the_allowance_grows_with_time_and_not_beyond_a_second() -> None:
    window = SendWindow(0, Limits(batch=100, inflight=10_000, rate=50), 0.0)
    assert window.room(0.0) == 50
    window.record(50, 1, 0.0)
    assert window.room(0.0) == 0 and window.delay(0.0) is not None
    assert window.room(0.5) == 25
    assert window.room(100.0) == 50


def test_busy_stops_sending_until_its_time_is_over() -> None:
    window = SendWindow(0, Limits(), 0.0)
    window.record(10, 1, 0.0)
    window.busy(5.0)
    assert window.sent == 0 and window.room(4.9) == 0
    assert window.delay(4.0) == 1.0
    assert window.room(5.0) == 100


def test_a_resend_goes_back_to_the_very_event_asked_for() -> None:
    window = SendWindow(0, Limits(), 0.0)
    window.record(50, 9_000, 0.0)
    window.ack(20, 0.0)
    window.resend(31)
    assert (window.sent, window.acked) == (30, 20)
    window.resend(11)
    assert (window.sent, window.acked) == (10, 10)


def test_a_megabyte_under_way_is_enough() -> None:
    window = SendWindow(0, Limits(), 0.0)
    window.record(5, 1024 * 1024, 0.0)
    assert window.room(0.0) == 0
    assert window.ack(5, 1.0) and window.room(1.0) == 100
    assert window.waiting_since is None
