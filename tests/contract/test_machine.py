"""The protocol as a state machine: whatever is lost, cut, restarted or pressed, the log is whole.

The real link, writer, services and database; the transport is the test's own, so that a frame, an
ack or a whole server can be lost at any step.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ctxhealth.store import queries, writes
from ctxhealth.store.models import Chat, Command, Event, Stream
from ctxhealth.store.models.actions import FINAL_STATES
from ctxhealth.store.verify import verify
from ctxhealth.store.writer import Writer
from ctxhealth.wire.frames import Ack
from tests.ingest.world import Outbox, Wire
from tests.store.conftest import connect_agent
from tests.store.streams import event, exchange, message, opened

pytestmark = [pytest.mark.db, pytest.mark.django_db(transaction=True)]
SERIAL = iter(range(1, 10**9))


class Protocol(RuleBasedStateMachine):
    """One agent with two chats, its outbox, its connection, the server."""

    writer: Writer

    @initialize()
    def begin(self) -> None:
        self.name = f"machine-{next(SERIAL)}"
        self.epochs = 0
        self.effects: dict[str, int] = {}
        self.writer = Writer()
        self.writer.start()
        self._new_epoch()
        self.wire: Wire | None = None

    def _new_epoch(self) -> None:
        self.epochs += 1
        self.outbox = Outbox(f"epoch-{self.epochs}")
        self.promised: dict[str, int] = getattr(self, "promised", {})

    def teardown(self) -> None:
        if hasattr(self, "writer"):
            self.writer.stop()

    # The agent works.

    @rule(
        kind=st.sampled_from(["open", "message", "exchange", "bad", "gap"]),
        chat=st.sampled_from(["c1", "c2"]),
    )
    def happens(self, kind: str, chat: str) -> None:
        seq = self.outbox.head + 1
        made: list[dict[str, Any]] = {
            "open": [opened(seq, chat)],
            "message": [message(seq, chat)],
            "exchange": exchange(seq, 500 + seq, chat),
            "bad": [event(seq, "message.added", chat, id=seq, role="user", kind="text")],
            "gap": [event(seq, "gap", chat, count=3, reason="outbox full")],
        }[kind]
        for one in made:
            self.outbox.add(one)

    # The connection.

    @rule()
    def connects(self) -> None:
        connected = connect_agent(self.name, self.outbox.epoch)
        assert connected.acked >= self.outbox.acked
        self.wire = Wire(connected)
        self.cursor = connected.acked
        self.outbox.acked = connected.acked

    @precondition(lambda self: self.wire is not None)
    @rule(count=st.integers(1, 12))
    def sends(self, count: int) -> None:
        assert self.wire is not None
        frame = self.outbox.after(self.cursor, count)
        if frame and self.wire.send(self.writer, frame) is not None:
            self.cursor += len(frame)

    @precondition(lambda self: self.wire is not None)
    @rule(skip=st.integers(1, 3), count=st.integers(1, 5))
    def loses_a_frame_on_the_way(self, skip: int, count: int) -> None:
        assert self.wire is not None
        frame = self.outbox.after(self.cursor + skip, count)
        if frame and not self.wire.link.out.closing:
            self.wire.send(self.writer, frame)

    @precondition(lambda self: self.wire is not None)
    @rule(back=st.integers(1, 20), count=st.integers(1, 20))
    def sends_again(self, back: int, count: int) -> None:
        assert self.wire is not None
        frame = self.outbox.after(max(0, self.cursor - back), count)
        if frame and frame[-1]["seq"] <= self.cursor:
            self.wire.send(self.writer, frame)

    @precondition(lambda self: self.wire is not None)
    @rule(lost=st.booleans())
    def hears(self, lost: bool) -> None:
        """Acks move the outbox; a lost one does not; a resend moves the cursor back."""
        assert self.wire is not None
        for frame in self.wire.sent():
            if isinstance(frame, Ack) and not lost:
                self.outbox.acked = max(self.outbox.acked, frame.upto)
                self.promised[self.outbox.epoch] = self.outbox.acked
        if self.wire.link.awaited is not None:
            self.cursor = self.wire.link.awaited - 1
        if self.wire.link.out.closing:
            self.wire = None

    @rule()
    def disconnects(self) -> None:
        self.wire = None

    @precondition(lambda self: self.wire is not None)
    @rule()
    def an_older_connection_writes_nothing(self) -> None:
        assert self.wire is not None
        older = self.wire
        self.connects()
        before = Event.objects.count()
        frame = self.outbox.after(self.cursor, 3)
        if frame:
            receipt = older.send(self.writer, frame)
            assert receipt is None or receipt.replaced
        assert Event.objects.count() == before

    # Crashes.

    @rule(drain=st.booleans())
    def the_server_restarts(self, drain: bool) -> None:
        self.writer.stop(drain=drain)
        self.writer = Writer(cache=1)
        self.writer.start()
        self.wire = None

    @rule()
    def the_agent_loses_its_outbox(self) -> None:
        self._new_epoch()
        self.wire = None

    # Commands.

    @rule(kind=st.sampled_from(["compact_fallback", "ping"]), key=st.integers(1, 6))
    def somebody_presses(self, kind: str, key: int) -> None:
        row = queries.chat_find(self.name, "c1")
        if row is None:
            return
        with suppress(writes.Refused, writes.OpenCommand):
            writes.command_request(
                chat_id=row.id,
                kind=kind,
                idempotency_key=f"{kind}-{key}",
                by=None,
                by_name="operator",
                allowed=True,
            )

    @precondition(lambda self: self.wire is not None)
    @rule(state=st.sampled_from(["received", "started", "succeeded", "failed", "waiting"]))
    def a_command_is_delivered_and_moves(self, state: str) -> None:
        assert self.wire is not None
        link = self.wire.link
        for frame in writes.commands_take(agent=link.stream.agent, conn_no=link.conn_no):
            if frame.id not in self.effects:
                self.effects[frame.id] = 1
                self.outbox.add(event(0, "command.progress", "c1", command=frame.id, state=state))

    @rule()
    def time_passes(self) -> None:
        writes.command_expire_due(now=2**52)

    # What must hold.

    @invariant()
    def every_stream_is_whole_and_keeps_what_was_acked(self) -> None:
        if not hasattr(self, "name"):
            return
        for stream in Stream.objects.filter(agent__name=self.name):
            rows = Event.objects.filter(stream=stream).order_by("id")
            seqs = list(rows.values_list("seq", flat=True))
            assert seqs == list(range(1, stream.head + 1))
            assert stream.head >= self.promised.get(stream.epoch, 0)

    @invariant()
    def a_command_that_ended_stays_as_it_is(self) -> None:
        for command in Command.objects.all():
            assert command.open is (command.state not in FINAL_STATES)
        open_now = Command.objects.filter(open=True, mutating=True).values_list(
            "chat_id", flat=True
        )
        assert len(open_now) == len(set(open_now))

    @invariant()
    def the_fold_of_the_log_is_what_is_stored(self) -> None:
        if getattr(self, "name", None) and Chat.objects.filter(agent__name=self.name).exists():
            for chat in Chat.objects.filter(agent__name=self.name):
                report = verify(chat=chat.pk)
                assert report.problems == []


def test_whatever_happens_the_log_is_whole_and_the_fold_is_what_is_stored() -> None:
    run_state_machine_as_test(
        Protocol,
        settings=settings(
            max_examples=12,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
