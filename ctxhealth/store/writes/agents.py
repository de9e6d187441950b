"""Connections of agents, and the server's own events that they and the clock bring about."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ctxhealth.core.state import Link
from ctxhealth.store import incarnation, unit
from ctxhealth.store.clock import now_ms
from ctxhealth.store.intake import StreamHandle
from ctxhealth.store.models import Agent, Chat, Stream
from ctxhealth.store.through import call
from ctxhealth.store.unit import Unit
from ctxhealth.store.writes.connections import connection_began, connection_ended
from ctxhealth.store.writes.delivery import commands_of_new_epoch
from ctxhealth.wire.events import ServerConnected, ServerDisconnected, ServerTick
from ctxhealth.wire.frames import Hello

# Chats without an event for so long hear of a connection only with their next event.
ANNOUNCED_MS = 24 * 3_600_000
CHUNK = 100
JUST_NOW_MS = 10_000


class Connected(NamedTuple):
    """What the server found out about an agent's hello."""

    stream: StreamHandle
    conn_no: int
    acked: int
    incarnation: str


def agent_connect(
    *, project: int, hello: Hello, skew_ms: int | None = None, fence: bool = True
) -> Connected:
    """Take on an agent's newest connection; every older one loses the right to write.

    ``fence`` False (HTTP) registers agent and stream and leaves connections alone.
    """
    return call(_connect, project, hello, skew_ms, fence)


def agent_disconnect(*, agent: int, conn_no: int, reason: str) -> bool:
    """Note that this connection ended; False where a newer one took over meanwhile."""
    return call(_disconnect, agent, conn_no, reason)


def agent_seen(*, agent: int, skew_ms: int | None) -> None:
    """Note a heartbeat, which the ingest does rarely."""
    call(_seen, agent, skew_ms)


def chats_announce(
    *,
    agent: int,
    conn_no: int,
    connected: bool,
    reason: str = "",
    restart: bool = False,
    after: int = 0,
    limit: int = CHUNK,
) -> int | None:
    """Append connected or disconnected to the agent's open chats, a bounded number at a time.

    Chats that are only read hear of a connection with their first event in it: a tree of
    thousands of old sessions would otherwise get two events each for every look at it.
    Returns the chat to go on after, None when done.
    """
    return call(_announce, agent, conn_no, connected, reason, restart, after, limit)


def chats_await(*, after: int = 0, limit: int = CHUNK) -> int | None:
    """The server is back: the wait for agents whose troubled chats lost them begins anew.

    Returns the chat to go on after, None when done.
    """
    return call(_await, after, limit)


def chats_tick(*, now: int | None = None, limit: int = CHUNK) -> int:
    """Append a tick to the chats whose deadline passed; how many."""
    return call(_tick, now, limit)


def _connect(project: int, hello: Hello, skew_ms: int | None, fence: bool) -> Connected:
    work, now = _unit(), now_ms()
    agent, new = Agent.objects.get_or_create(
        project_id=project, name=hello.agent, defaults={"created_at": now}
    )
    stream, _ = Stream.objects.get_or_create(
        agent=agent, epoch=hello.epoch, defaults={"created_at": now}
    )
    if fence or new:
        # A post over HTTP says nothing of what a connected agent can do.
        _describe(agent, hello, skew_ms, now)
    if fence:
        if agent.epoch != hello.epoch:
            commands_of_new_epoch(work, agent.pk, hello.epoch)
        agent.epoch, agent.conn_no = hello.epoch, agent.conn_no + 1
        agent.connected, agent.connected_at = True, now
        stream.conn_no = agent.conn_no
        stream.save(update_fields=["conn_no"])
        work.heads.fence(agent.pk, agent.conn_no)
        connection_began(agent, now)
    agent.save()
    handle = StreamHandle(
        project=project,
        agent=agent.pk,
        stream=stream.pk,
        agent_name=agent.name,
        read_only=hello.caps.read_only,
        commands=tuple(hello.caps.commands),
        skew_ms=skew_ms,
        epoch=hello.epoch,
    )
    return Connected(handle, agent.conn_no, work.heads.of(stream.pk)[0], incarnation.current())


def _describe(agent: Agent, hello: Hello, skew_ms: int | None, now: int) -> None:
    agent.runtime = hello.runtime or agent.runtime
    agent.runtime_version = hello.runtime_version or agent.runtime_version
    agent.sdk = hello.sdk or agent.sdk
    agent.caps = msgspec.json.encode(hello.caps).decode()
    agent.last_seen_at, agent.skew_ms = now, skew_ms


def _disconnect(agent: int, conn_no: int, reason: str) -> bool:
    now = now_ms()
    ended = Agent.objects.filter(id=agent, conn_no=conn_no, connected=True).update(
        connected=False,
        disconnected_at=now,
        disconnect_reason=reason[:200],
        last_seen_at=now,
    )
    if ended:
        connection_ended(agent, now, reason)
    return bool(ended)


def _seen(agent: int, skew_ms: int | None) -> None:
    Agent.objects.filter(id=agent).update(last_seen_at=now_ms(), skew_ms=skew_ms)


def _announce(
    agent: int, conn_no: int, connected: bool, reason: str, restart: bool, after: int, limit: int
) -> int | None:
    work = _unit()
    owner = Agent.objects.filter(id=agent).first()
    if owner is None or owner.conn_no != conn_no:
        return None
    caps = msgspec.json.decode(owner.caps)
    rows = Chat.objects.filter(agent_id=agent, closed=False, id__gt=after).order_by("id")
    if connected and caps.get("read_only"):
        # Back after it was late: those that this connection has told of its silence.
        rows = rows.filter(conn_no=-conn_no)
    elif connected:
        rows = rows.exclude(conn_no=conn_no).filter(last_event_at__gte=now_ms() - ANNOUNCED_MS)
    else:
        # A chat that never heard of this connection has nothing to lose by its end.
        rows = rows.filter(conn_no=conn_no)
    found = list(rows.values_list("id", flat=True)[:limit])
    for pk in found:
        if connected:
            _announce_connected(work, pk, owner, caps)
        else:
            _announce_disconnected(work, pk, conn_no, reason, restart)
    return found[-1] if len(found) == limit else None


def _announce_connected(work: Unit, chat: int, owner: Agent, caps: dict[str, object]) -> None:
    commands = caps.get("commands")
    work.append(
        chat,
        lambda seq, name: ServerConnected(
            seq=seq,
            ts=work.now,
            chat=name,
            conn_no=owner.conn_no,
            read_only=bool(caps.get("read_only")),
            commands=list(commands) if isinstance(commands, list) else [],
            skew_ms=owner.skew_ms,
            epoch=owner.epoch or None,
        ),
    )
    work.heard_of(chat, owner.conn_no)


def _await(after: int, limit: int) -> int | None:
    work = _unit()
    rows = Chat.objects.filter(connection="late", closed=False, id__gt=after).order_by("id")
    found = list(rows.values_list("id", flat=True)[:limit])
    for pk in found:
        held = work.held(pk)
        link = None if held is None else held.state.link
        if link is not None and not _waits_anew(link, work.now):
            _announce_disconnected(work, pk, link.conn_no, "the server was away", True)
    return found[-1] if len(found) == limit else None


def _waits_anew(link: Link, now: int) -> bool:
    """Whether the chat has just been told of a restart."""
    return link.restarted and link.since is not None and now - link.since < JUST_NOW_MS


def _announce_disconnected(work: Unit, chat: int, conn_no: int, reason: str, restart: bool) -> None:
    work.append(
        chat,
        lambda seq, name: ServerDisconnected(
            seq=seq, ts=work.now, chat=name, conn_no=conn_no, reason=reason[:200], restart=restart
        ),
    )
    # Whatever this connection still brings says "connected" again before it.
    work.heard_of(chat, -conn_no)


def _tick(now: int | None, limit: int) -> int:
    work = _unit()
    moment = work.now if now is None else now
    due = (
        Chat.objects.filter(deadline__lte=moment).order_by("deadline").values_list("id", flat=True)
    )
    count = 0
    for pk in list(due.values_list("id", flat=True)[:limit]):
        work.append(pk, lambda seq, name: ServerTick(seq=seq, ts=moment, chat=name), moment)
        count += 1
    return count


def _unit() -> Unit:
    work = unit.current()
    assert work is not None, "services run inside a unit"
    return work
