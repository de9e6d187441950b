"""The one writer: batches, dedupe, fences, trouble with the database and with events."""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import Any

import pytest
from django.db import connection

from ctxhealth.core.fold import fold
from ctxhealth.store import queries, unit, writes
from ctxhealth.store.models import Agent, Chat, Checkpoint, Event, Stream
from ctxhealth.store.through import acall, call
from ctxhealth.store.verify import verify
from ctxhealth.store.writer import Writer
from ctxhealth.store.writes.agents import Connected
from tests.store.conftest import SECONDS, Sender, connect_agent
from tests.store.streams import event, intakes, message, opened, session

pytestmark = pytest.mark.db


def test_events_are_stored_once_with_their_projections(sender: Sender) -> None:
    at = connect_agent()
    events = session(3, 8)
    receipt = sender.send(at, events)
    assert (receipt.upto, receipt.stored, receipt.rejected) == (len(events), len(events), ())
    page = queries.board_page()
    assert {row.external_id for row in page.rows} == {"c1", "c2", "c3"}
    assert all(row.summary.requests == 8 for row in page.rows)
    assert verify().problems == []


def test_a_duplicate_batch_is_success_and_changes_nothing(sender: Sender) -> None:
    at = connect_agent()
    events = session(1, 4)
    sender.send(at, events)
    versions = queries.board_versions()
    again = sender.send(at, events)
    assert (again.stored, again.duplicates, again.conflicts) == (0, len(events), 0)
    assert queries.board_versions() == versions
    assert Event.objects.filter(stream__isnull=False).count() == len(events)


def test_what_an_agent_lost_without_a_chat_is_told_in_its_chats_once_a_batch(
    sender: Sender,
) -> None:
    at, other = connect_agent(), connect_agent("a2")
    sender.send(at, [opened(1), message(2), opened(3, "c2"), message(4, "c2")])
    sender.send(other, [opened(1, "d1"), message(2, "d1")])
    lost = [event(seq, "gap", None, count=3, reason="outbox full") for seq in (5, 6)]
    sender.send(at, [*lost, message(7), event(8, "gap", "c2", count=1, reason="too large")])
    told = {
        chat.external_id: [view.sentence for view in queries.chat_findings(chat.pk)
                           if view.code == "gap"]
        for chat in Chat.objects.all()
    }  # fmt: skip
    whole = "The agent dropped 6 events: outbox full; of this agent's chats it is not said which."
    assert told == {"c1": [whole], "c2": ["The agent dropped 7 events: too large."], "d1": []}
    sender.writer.stop()
    assert verify().problems == []


def test_nothing_behind_a_gap_is_stored(sender: Sender) -> None:
    at = connect_agent()
    receipt = sender.send(at, [opened(1), message(2), message(4), message(5)])
    assert (receipt.upto, receipt.stored, receipt.resend) == (2, 2, 3)
    assert sender.send(at, [message(5)]).resend == 3
    assert sender.send(at, [message(3), message(4), message(5)]).upto == 5


def test_two_submissions_of_one_stream_in_one_batch_dedupe_each_other(sender: Sender) -> None:
    at = connect_agent()
    waits = [sender.later(at.stream, at.conn_no, [opened(1), message(2)]) for _ in range(5)]
    receipts = [wait() for wait in waits]
    assert sum(receipt.stored for receipt in receipts) == 2
    assert sum(receipt.duplicates for receipt in receipts) == 8


def test_an_older_connection_writes_nothing(sender: Sender) -> None:
    older = connect_agent()
    sender.send(older, [opened(1)])
    newer = connect_agent()
    refused = sender.send(older, [message(2)])
    assert refused.replaced and refused.stored == 0
    assert sender.send(newer, [message(2)]).stored == 1


def test_a_conflict_keeps_the_first_and_is_noted_in_the_chat(sender: Sender) -> None:
    at = connect_agent()
    sender.send(at, [opened(1), message(2, tokens=5)])
    receipt = sender.send(at, [message(2, tokens=6)])
    assert receipt.conflicting == (2,)
    last = queries.chat_events(Chat.objects.get().pk)[-1]
    assert last.by_server and '"conflict"' in last.body
    (finding,) = queries.chat_findings(Chat.objects.get().pk)
    assert finding.code == "conflict" and "event 2 (" in finding.sentence
    assert verify().problems == []


def test_an_event_that_cannot_be_stored_leaves_a_tombstone_and_harms_no_other(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fold

    def fails_on_poison(state: Any, event: Any, *rest: Any) -> None:
        if getattr(event, "id", "") == "poison":
            raise ZeroDivisionError("poison")
        real(state, event, *rest)

    monkeypatch.setattr(unit, "fold", fails_on_poison)
    at, other = connect_agent(), connect_agent("a2")
    bad = [opened(1), message(2), message(3, id="poison"), message(4)]
    waits = [
        sender.later(at.stream, at.conn_no, bad),
        sender.later(other.stream, other.conn_no, [opened(1), message(2)]),
    ]
    receipt, fine = (wait() for wait in waits)
    assert (receipt.upto, [entry.seq for entry in receipt.rejected]) == (4, [3])
    assert receipt.rejected[0].code == "internal"
    assert fine.stored == 2 and fine.rejected == ()
    monkeypatch.undo()
    assert verify().problems == []


def test_a_service_that_fails_undoes_only_itself(sender: Sender, writer: Writer) -> None:
    at = connect_agent()

    def fails() -> None:
        Agent.objects.update(runtime="never")
        raise LookupError("no")

    wait = sender.later(at.stream, at.conn_no, [opened(1)])
    with pytest.raises(LookupError):
        call(fails)
    assert wait().stored == 1
    assert Agent.objects.get().runtime == ""


def test_a_service_that_fails_after_it_appended_leaves_no_trace(sender: Sender) -> None:
    at = connect_agent()
    sender.send(at, [opened(1)])
    chat = Chat.objects.get().pk

    def fails() -> None:
        work = unit.current()
        assert work is not None
        work.append(chat, lambda seq, name: intakes([event(seq, "note", name, text="x")])[0].event)
        raise LookupError("no")

    with pytest.raises(LookupError):
        call(fails)
    assert sender.send(at, [message(2)]).stored == 1
    assert verify().problems == []


def test_states_come_back_from_checkpoints_after_a_restart(sender: Sender, writer: Writer) -> None:
    at = connect_agent()
    events = session(2, 150)
    for start in range(0, len(events), 100):
        sender.send(at, events[start : start + 100])
    assert Checkpoint.objects.exists()
    writer.stop()
    restarted = Writer()
    restarted.start()
    try:
        more = [message(len(events) + step + 1) for step in range(5)]
        assert Sender(restarted).send(at, more).stored == 5
    finally:
        restarted.stop()
    assert verify().problems == []


def test_a_small_cache_folds_the_same_states(transactional_db: None) -> None:
    writer = Writer(cache=2)
    writer.start()
    try:
        at, sender = connect_agent(), Sender(writer)
        events = session(12, 6)
        for start in range(0, len(events), 7):
            sender.send(at, events[start : start + 7])
        assert len(writer.states) <= 2 and writer.states.evictions > 0
    finally:
        writer.stop()
    assert verify().problems == []


def test_an_old_state_in_memory_is_not_carried_on(sender: Sender, writer: Writer) -> None:
    at = connect_agent()
    sender.send(at, [opened(1), message(2)])
    held = next(iter(writer.states))
    held.chat_seq -= 1
    sender.send(at, [message(3)])
    assert verify().problems == []


def test_what_another_connection_wrote_is_seen_before_the_next_event(sender: Sender) -> None:
    at = connect_agent()
    sender.send(at, [opened(1)])
    sender.send(at, [message(2)])
    before = Chat.objects.get().version
    Chat.objects.update(version=before + 40)
    sender.send(at, [message(3)])
    assert Chat.objects.get().version == before + 41
    assert verify().problems == []


def test_a_row_is_rewritten_whole_where_a_column_that_seldom_changes_did(sender: Sender) -> None:
    at = connect_agent()
    sender.send(at, [opened(1, title="first"), message(2)])
    sender.send(at, [message(3)])
    sender.send(at, [opened(4, title="second")])
    assert Chat.objects.get().title == "second"
    assert verify().problems == []


def test_a_locked_database_answers_nobody_and_loses_nothing(sender: Sender, writer: Writer) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("SQLite's lock")
    said: list[str | None] = []
    writer.on_busy_hooks.append(lambda reason, retry: said.append(reason))
    at = connect_agent()
    with sqlite3.connect(
        connection.settings_dict["NAME"], isolation_level=None, check_same_thread=False
    ) as holder:
        holder.execute("BEGIN IMMEDIATE")
        wait = sender.later(at.stream, at.conn_no, [opened(1)])
        until = time.monotonic() + SECONDS
        while not said and time.monotonic() < until:
            time.sleep(0.02)
        assert said and writer.busy
        assert not Event.objects.exists()
        holder.execute("ROLLBACK")
    assert wait().stored == 1
    assert said[-1] is None and writer.busy is None


def test_a_full_queue_refuses_and_keeps_nothing(
    writer: Writer, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxhealth.store.waiting.QUEUE_EVENTS", 3)
    at = connect_agent()
    gate = threading.Event()
    writer.enqueue(gate.wait, SECONDS)
    first = sender.later(at.stream, at.conn_no, [opened(1), message(2)])
    assert not writer.submit_events(at.stream, at.conn_no, intakes([message(3)] * 3), print)
    assert writer.counters.refused_full == 1
    gate.set()
    assert first().stored == 2


def test_stopping_writes_what_waits(transactional_db: None) -> None:
    writer = Writer()
    writer.start()
    at = connect_agent()
    sender = Sender(writer)
    waits = [sender.later(at.stream, at.conn_no, [message(seq)]) for seq in range(1, 200)]
    writer.stop()
    assert waits[-1]().upto == 199
    assert Stream.objects.get().head == 199


def test_secrets_are_gone_before_the_insert(sender: Sender) -> None:
    at = connect_agent()
    secret = "ghp_" + "a1B2" * 9
    sender.send(
        at,
        [
            opened(1, title=f"use {secret} now"),
            message(2, excerpt=f"token {secret}"),
            event(3, "turn.ended", "c1", turn="t1", outcome="error", error=f"401 for {secret}"),
            event(4, "note", "c1", text="escaped", odd=f"{secret}\u0001"),
        ],
    )
    for row in Event.objects.all():
        assert secret not in row.body
    assert secret not in Chat.objects.get().summary
    assert verify().problems == []


def test_server_events_stand_in_the_chats_own_order(sender: Sender) -> None:
    at = connect_agent()
    sender.send(at, [opened(1)])
    chat = Chat.objects.get().pk
    writes.chats_announce(agent=at.stream.agent, conn_no=at.conn_no, connected=False, reason="bye")
    sender.send(at, [message(2)])
    types = [row.type for row in queries.chat_events(chat)]
    assert types == [
        "server.connected",
        "chat.opened",
        "server.disconnected",
        "server.connected",
        "message.added",
    ]
    assert [row.chat_seq for row in queries.chat_events(chat)] == [1, 2, 3, 4, 5]


def test_a_deadline_that_passed_becomes_a_tick(sender: Sender) -> None:
    at = connect_agent()
    sender.send(at, [opened(1), event(2, "turn.started", "c1", turn="t1", kind="user")])
    chat = Chat.objects.get()
    assert chat.deadline is not None
    assert writes.chats_tick(now=chat.deadline - 1) == 0
    assert writes.chats_tick(now=chat.deadline) == 1
    assert queries.chat_events(chat.pk)[-1].type == "server.tick"
    assert writes.chats_tick(now=chat.deadline) == 0
    assert verify().problems == []


def test_a_child_chat_hangs_under_its_parent_whichever_came_first(sender: Sender) -> None:
    at = connect_agent()
    sender.send(
        at, [opened(1, "child", parent="top"), opened(2, "top"), opened(3, "late", parent="top")]
    )
    top = queries.chat_find("a1", "top")
    assert top is not None
    assert {row.external_id for row in queries.chat_children(top.id)} == {"child", "late"}


def test_transcripts_are_folded_in_their_own_time(sender: Sender) -> None:
    at = connect_agent(read_only=True, commands=[])
    sender.send(at, session(1, 3))
    summary = queries.board_page().rows[0].summary
    assert summary.last_event_at is not None and summary.last_event_at < 1_790_000_100_000
    assert summary.connection.value == "read_only"
    writes.chats_announce(agent=at.stream.agent, conn_no=at.conn_no, connected=False, reason="bye")
    assert queries.board_page().rows[0].summary.connection.value == "imported"


def test_a_reading_connection_is_told_only_to_the_chats_it_reads(sender: Sender) -> None:
    first = connect_agent(read_only=True, commands=[])
    sender.send(first, [opened(1, "old"), opened(2, "read")])
    old, read = (found.id for found in map(found_chat, ("old", "read")))
    announce(first, connected=False)
    again = connect_agent(read_only=True, commands=[])
    announce(again, connected=True)
    assert types_of(old)[-1] == types_of(read)[-1] == "server.disconnected"
    sender.send(again, [message(3, "read")])
    announce(again, connected=False)
    assert types_of(old) == ["server.connected", "chat.opened", "server.disconnected"]
    assert types_of(read)[3:] == ["server.connected", "message.added", "server.disconnected"]
    assert verify().problems == []


def test_a_reading_connection_that_was_late_comes_back_where_it_was_missed(
    sender: Sender,
) -> None:
    before = connect_agent(read_only=True, commands=[])
    sender.send(before, [opened(1, "old")])
    announce(before, connected=False)
    at = connect_agent(read_only=True, commands=[])
    sender.send(at, [opened(2, "read")])
    for connected in (False, True):
        announce(at, connected=connected)
    assert types_of(found_chat("read").id)[2:] == ["server.disconnected", "server.connected"]
    assert types_of(found_chat("old").id)[2:] == ["server.disconnected"]
    announce(at, connected=False)
    assert found_chat("read").summary.connection.value == "imported"


def announce(at: Connected, *, connected: bool) -> None:
    assert (
        writes.chats_announce(agent=at.stream.agent, conn_no=at.conn_no, connected=connected)
        is None
    )


def found_chat(name: str) -> queries.ChatRow:
    found = queries.chat_find("a1", name)
    assert found is not None
    return found


def types_of(chat: int) -> list[str]:
    return [row.type for row in queries.chat_events(chat)]


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_a_service_can_be_awaited_on_the_loop() -> None:
    made = await acall(connect_agent, "awaited")
    assert made.conn_no == 1
