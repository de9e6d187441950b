"""What all agents' connections of one loop share, and the work that goes on behind them.

The keeper looks once a second at every connection: heartbeats, late, offline, open gaps, tokens.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import connection

from ctxhealth.ingest.connections import ConnectionTable
from ctxhealth.ingest.hub import Hub
from ctxhealth.ingest.link import RESEND_AGAIN_S, Link
from ctxhealth.store import queries, writes
from ctxhealth.store.clock import now_ms
from ctxhealth.store.intake import Intake
from ctxhealth.store.through import AWAY, StoreBusy
from ctxhealth.store.unit import CommandChange
from ctxhealth.store.writer import Writer
from ctxhealth.tokens import CountingPool
from ctxhealth.wire import limits
from ctxhealth.wire.frames import Cancel, Heartbeat

P = ParamSpec("P")
R = TypeVar("R")

READERS = 2
KEEPER_S = 1.0
TOKENS_EVERY_S = 30.0
SEEN_EVERY_S = 30.0
CHUNKS_AT_MOST = 200
# How long one query may take, and how long after a failed one nobody tries a handshake.
READ_S = 3.0
AWAY_S = 1.0
_LOG = logging.getLogger(__name__)


class Gate:
    """Made on the loop that serves the sockets."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.table = ConnectionTable()
        self.hub = Hub()
        self._loop = asyncio.get_running_loop()
        self._readers = ThreadPoolExecutor(READERS, "ctxhealth-gate")
        self.counting = CountingPool()
        self._tasks: set[asyncio.Task[None]] = set()
        self._away_until = 0.0
        self._tokens_at = time.monotonic()
        self._seen_at = time.monotonic()
        self._keeper: asyncio.Task[None] | None = None
        writer.on_command_hooks.append(self._on_commands)
        writer.on_revoked_hooks.append(self._on_revoked)
        writer.on_busy_hooks.append(self._on_busy)

    def start(self) -> None:
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Close every connection with "come back", end the keeper."""
        for hooks, hook in (
            (self.writer.on_command_hooks, self._on_commands),
            (self.writer.on_revoked_hooks, self._on_revoked),
            (self.writer.on_busy_hooks, self._on_busy),
        ):
            if hook in hooks:
                hooks.remove(hook)  # type: ignore[arg-type]
        for link in self.table:
            link.closed_by = link.closed_by or "the server restarts"
            link.out.close(limits.CLOSE_RESTART, "the server restarts")
        tasks = [task for task in (self._keeper, *self._tasks) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._readers.shutdown(wait=False, cancel_futures=True)
        self.counting.close()

    async def read(self, fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """A query on this room's own threads, away from the loop.

        Raises StoreBusy where the database is away; the next ones then hear it at once.
        """
        if time.monotonic() < self._away_until:
            raise StoreBusy("the database is away")
        query = self._loop.run_in_executor(self._readers, lambda: _closing(fn, *args, **kwargs))
        try:
            async with asyncio.timeout(READ_S):
                return await query
        except (*AWAY, TimeoutError):
            self._away_until = time.monotonic() + AWAY_S
            raise StoreBusy("the database is away") from None

    # Connections.

    def join(self, link: Link) -> None:
        """The newest connection of its agent: the older one goes, chats and commands hear."""
        self.table.accepted += 1
        older = self.table.put(link)
        if older is not None:
            older.closed_by = "replaced"
            older.out.close(limits.CLOSE_REPLACED, "a newer connection of this agent took over")
        if older is not link:
            self._spawn(self._arrived(link))

    def leave(self, link: Link, reason: str) -> None:
        if self.table.remove(link):
            self._spawn(self._left(link, reason))

    async def _arrived(self, link: Link) -> None:
        await self._announce(link, True, "")
        await self._deliver(link)
        await self._quietly(writes.token_used, token_id=link.token, now=now_ms())

    async def _left(self, link: Link, reason: str) -> None:
        agent, conn_no = link.stream.agent, link.conn_no
        await self._quietly(writes.agent_disconnect, agent=agent, conn_no=conn_no, reason=reason)
        await self._announce(link, False, reason)

    async def _announce(self, link: Link, connected: bool, reason: str) -> None:
        after: int | None = 0
        for _ in range(CHUNKS_AT_MOST):
            after = await self._quietly(
                writes.chats_announce,
                agent=link.stream.agent,
                conn_no=link.conn_no,
                connected=connected,
                reason=reason,
                after=after,
            )
            if after is None:
                return

    # Events.

    def submit_soon(self, link: Link, intakes: list[Intake]) -> None:
        """Submit together what one turn of the loop brings from one connection."""
        link.inflight += len(intakes)
        pending = link.pending
        if not pending:
            self._loop.call_soon(self._submit, link)
        pending.extend(intakes)

    def _submit(self, link: Link) -> None:
        intakes, link.pending = link.pending, []
        count = len(intakes)
        done = partial(self.hub.post, link.answer, count, link.generation)
        if not self.writer.submit_events(link.stream, link.conn_no, intakes, done):
            link.inflight -= count
            self.starve(link, intakes[0].seq)

    def starve(self, link: Link, seq: int) -> None:
        """There is no room: keep nothing, say so, and ask for it again when there is."""
        link.out.busy(1_000, self.writer.busy or "the server has too much to write")
        link.await_seq(seq)
        link.starved = True

    # Commands.

    def _on_commands(self, changes: list[CommandChange]) -> None:
        """On the writer's thread, after the commit: only a poke."""
        for agent in {change.agent for change in changes}:
            self.hub.post(self._poke, agent)

    def _poke(self, agent: int) -> None:
        link = self.table.get(agent)
        if link is not None:
            self._spawn(self._deliver(link))

    async def _deliver(self, link: Link) -> None:
        """Send what is due; a redelivery runs nothing twice, the agent knows the id."""
        if not link.takes_commands or link.out.closing:
            return
        agent, conn_no = link.stream.agent, link.conn_no
        for frame in await self._quietly(writes.commands_take, agent=agent, conn_no=conn_no) or ():
            link.commands_sent += link.out.frame(frame)
        try:
            cancels = await self.read(queries.commands_cancelling, agent, conn_no)
        except StoreBusy:
            return
        for command in cancels:
            if command not in link.cancelled:
                link.cancelled.add(command)
                link.out.frame(Cancel(id=command))

    # Tokens and trouble.

    def _on_revoked(self, tokens: list[int]) -> None:
        self.hub.post(self._cut, frozenset(tokens))

    def _cut(self, tokens: frozenset[int]) -> None:
        for link in self.table:
            if link.token in tokens:
                link.closed_by = "token revoked"
                link.out.close(limits.CLOSE_TOKEN, "the token was revoked or has expired")

    def _on_busy(self, reason: str | None, retry_ms: int) -> None:
        self.hub.post(self._tell_busy, reason, retry_ms)

    def _tell_busy(self, reason: str | None, retry_ms: int) -> None:
        for link in self.table:
            if reason is not None and link.inflight:
                link.out.busy(retry_ms, reason)

    # The keeper.

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(KEEPER_S)
            try:
                await self._round()
            except StoreBusy:
                continue
            except Exception:
                _LOG.exception("a round of the keeper failed")

    async def _round(self) -> None:
        now = time.monotonic()
        for link in self.table:
            self._look_after(link, now)
        if now - self._tokens_at >= TOKENS_EVERY_S:
            self._tokens_at = now
            await self._check_tokens()
        if now - self._seen_at >= SEEN_EVERY_S:
            self._seen_at = now
            await self._note_seen(now)

    def _look_after(self, link: Link, now: float) -> None:
        quiet = now - link.heard
        if quiet >= limits.OFFLINE_SECONDS:
            link.closed_by = "no heartbeat"
            link.out.close(limits.CLOSE_OVERLOAD, f"nothing heard for {quiet:.0f} s")
            # A half-open socket may never say that it is gone.
            self.leave(link, "no heartbeat")
            return
        if (quiet >= limits.LATE_SECONDS) is not link.late:
            link.late = not link.late
            reason = f"nothing heard for {quiet:.0f} s" if link.late else ""
            self._spawn(self._announce(link, not link.late, reason))
        if now - link.hb_at >= limits.HEARTBEAT_SECONDS:
            link.hb_at = now
            link.out.frame(Heartbeat(now=now_ms(), acked=link.acked, cmd_head=link.commands_sent))
        self._reopen(link, now)

    def _reopen(self, link: Link, now: float) -> None:
        """Ask again for what is still awaited, once there is room for it."""
        if link.awaited is None or link.out.closing:
            return
        if link.starved:
            if self.writer.has_room and self.writer.busy is None:
                link.starved = False
                link.out.resend(link.awaited)
        elif now - link.awaited_at >= RESEND_AGAIN_S:
            link.ask_again(link.awaited)

    async def _check_tokens(self) -> None:
        wanted = {link.token for link in self.table}
        if wanted:
            usable = await self.read(queries.tokens_usable, wanted, now_ms())
            self._cut(frozenset(wanted - usable))

    async def _note_seen(self, now: float) -> None:
        for link in self.table:
            if now - link.heard < SEEN_EVERY_S:
                await self._quietly(
                    writes.agent_seen, agent=link.stream.agent, skew_ms=link.skew_ms
                )

    # Helpers.

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _LOG.error("work behind a connection failed", exc_info=task.exception())

    async def _quietly(self, fn: Callable[..., R], **kwargs: Any) -> R | None:
        """A write that may fail while the database is away: the next round does it again."""
        try:
            return await writes.acall(fn, **kwargs)
        except StoreBusy:
            return None


def _closing(fn: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Connections of these threads do not outlive their query."""
    try:
        return fn(*args, **kwargs)
    finally:
        connection.close()
