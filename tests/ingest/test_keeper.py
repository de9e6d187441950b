"""Heartbeats, late, offline, open gaps and tokens: line 14 of the delivery contract.

Time is an argument of the keeper's look at a connection, so nothing here waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async

from ctxhealth.ingest.gate import Gate
from ctxhealth.ingest.link import RESEND_AGAIN_S, Link
from ctxhealth.store import queries, writes
from ctxhealth.store.intake import Receipt
from ctxhealth.store.models import Agent, Chat
from ctxhealth.store.writer import Writer
from ctxhealth.store.writes.agents import Connected
from ctxhealth.wire import limits
from ctxhealth.wire.frames import Busy, Heartbeat, Resend
from tests.store.conftest import Sender, connect_agent
from tests.store.streams import opened

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


async def _never(message: Any) -> None:
    raise AssertionError("nobody runs the sender")


def link_of(at: Connected) -> Link:
    return Link(
        send=_never,
        stream=at.stream,
        conn_no=at.conn_no,
        acked=at.acked,
        token=7,
        sdk="",
        takes_commands=True,
    )


@pytest_asyncio.fixture
async def gate(transactional_db: None) -> AsyncIterator[Gate]:
    writer = Writer()
    writer.start()
    made = Gate(writer)
    yield made
    await made.stop()
    await asyncio.to_thread(writer.stop)


async def settled(gate: Gate) -> None:
    while gate._tasks:
        await asyncio.gather(*gate._tasks)


async def joined(gate: Gate, name: str = "a1") -> Link:
    link = link_of(await writes.acall(connect_agent, name))
    gate.join(link)
    await settled(gate)
    return link


def frames(link: Link, kind: type) -> list[Any]:
    return [frame for frame in link.out._drain() if isinstance(frame, kind)]


async def test_line_14_a_heartbeat_every_fifteen_seconds_carries_the_cursor(gate: Gate) -> None:
    link = await joined(gate)
    link.acked = 41
    now = time.monotonic()
    gate._look_after(link, now + limits.HEARTBEAT_SECONDS - 1)
    assert frames(link, Heartbeat) == []
    gate._look_after(link, now + limits.HEARTBEAT_SECONDS + 1)
    (beat,) = frames(link, Heartbeat)
    assert beat.acked == 41 and beat.cmd_head == 0


async def test_line_14_silence_is_late_after_45_s_and_offline_after_90_s(gate: Gate) -> None:
    link = await joined(gate)
    sender = Sender(gate.writer)
    at = Connected(link.stream, link.conn_no, 0, "")
    await asyncio.to_thread(sender.send, at, [opened(1)])
    now = time.monotonic()
    gate._look_after(link, now + limits.LATE_SECONDS - 1)
    assert not link.late
    gate._look_after(link, now + limits.LATE_SECONDS + 1)
    assert link.late
    await settled(gate)
    chat = await sync_to_async(Chat.objects.get)()
    assert chat.connection in ("late", "offline")
    link.heard = now + limits.LATE_SECONDS + 2
    gate._look_after(link, now + limits.LATE_SECONDS + 3)
    await settled(gate)
    assert not link.late
    assert (await sync_to_async(Chat.objects.get)()).connection == "live"
    gate._look_after(link, link.heard + limits.OFFLINE_SECONDS + 1)
    await settled(gate)
    assert link.out.closing and gate.table.get(link.stream.agent) is None
    assert (await sync_to_async(Agent.objects.get)()).connected is False


async def test_line_14_the_skew_of_a_heartbeat_is_kept(gate: Gate) -> None:
    link = await joined(gate)
    link.heartbeat(Heartbeat(now=int(time.time() * 1_000) + 90_000, seq_head=12))
    info = gate.table.info(link.stream.agent)
    assert info is not None and info.skew_ms is not None
    assert abs(info.skew_ms - 90_000) < 5_000 and info.lag == 12


async def test_a_newer_connection_replaces_the_older_one(gate: Gate) -> None:
    older, newer = await joined(gate), await joined(gate)
    assert older.out.closing and not newer.out.closing
    gate.leave(older, "closed")
    await settled(gate)
    assert gate.table.get(newer.stream.agent) is newer
    assert (await sync_to_async(Agent.objects.get)()).connected is True


async def test_a_revoked_token_cuts_the_live_socket(gate: Gate) -> None:
    link = await joined(gate)
    made = await writes.acall(writes.token_create, name="t")
    link.token = made.token.pk
    await writes.acall(writes.token_revoke, token_id=made.token.pk)
    while not link.out.closing:
        await asyncio.sleep(0)
    assert link.out._closing == (limits.CLOSE_TOKEN, "the token was revoked or has expired")


async def test_a_token_that_expired_is_found_by_the_recheck(gate: Gate) -> None:
    link = await joined(gate)
    made = await writes.acall(writes.token_create, name="t", expires_at=5)
    link.token = made.token.pk
    await gate._check_tokens()
    assert link.out.closing


async def test_an_open_gap_is_asked_for_again_and_the_fourth_time_ends_it(gate: Gate) -> None:
    link = await joined(gate)
    gap = Receipt(upto=1, resend=2)
    link.answer(0, link.generation, gap)
    assert frames(link, Resend) == [Resend(epoch="e1", from_=2)]
    for _ in range(2):
        gate._reopen(link, link.awaited_at + RESEND_AGAIN_S + 1)
        assert len(frames(link, Resend)) == 1
    gate._reopen(link, link.awaited_at + RESEND_AGAIN_S + 1)
    assert link.out.closing


async def test_a_starved_link_is_told_busy_and_asked_again_when_there_is_room(gate: Gate) -> None:
    link = await joined(gate)
    gate.starve(link, 5)
    assert len(frames(link, Busy)) == 1
    gate._reopen(link, time.monotonic())
    assert frames(link, Resend) == [Resend(epoch="e1", from_=5)]
    assert not link.starved and len(link.resends) == 0


async def test_a_poke_delivers_a_command_and_a_cancel(gate: Gate) -> None:
    link = await joined(gate)
    at = Connected(link.stream, link.conn_no, 0, "")
    await asyncio.to_thread(Sender(gate.writer).send, at, [opened(1)])
    chat = await sync_to_async(Chat.objects.get)()
    row = await writes.acall(
        writes.command_request, chat_id=chat.pk, kind="compact_fallback", idempotency_key="k",
        by=None, by_name="op", allowed=True,
    )  # fmt: skip
    while link.commands_sent < 1:
        await asyncio.sleep(0)
    await settled(gate)
    await writes.acall(
        writes.command_cancel, command_id=row.id, by=None, by_name="op", allowed=True
    )
    while not link.cancelled:
        await asyncio.sleep(0)
    kinds = [type(frame).__name__ for frame in link.out._drain()]
    assert kinds == ["Command", "Cancel"]
    found = await sync_to_async(queries.command_get)(row.id)
    assert found is not None and found.state == "sent" and found.cancel_asked_at is not None
