"""Agents and what the fleet's compactions came to."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from django.db.models import Count, Max, OuterRef, Q, Subquery, Sum

from ctxhealth.store.clock import now_ms
from ctxhealth.store.intake import StreamHandle
from ctxhealth.store.models import Agent, CompactionAttempt, Stream

HOUR_MS = 3_600_000


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRow:
    """An agent as the database knows it; live lag and heartbeat come from the connections."""

    id: int
    name: str
    runtime: str
    runtime_version: str
    sdk: str
    commands: tuple[str, ...]
    fallback: str
    text: str
    read_only: bool
    connected: bool
    connected_at: int | None
    disconnected_at: int | None
    disconnect_reason: str
    last_event_at: int | None
    skew_ms: int | None
    events: int
    duplicates: int
    conflicts: int
    rejects: int
    gaps: int
    chats: int
    open_chats: int
    created_at: int


def agents_list(limit: int = 1_000) -> list[AgentRow]:
    """Agents, connected ones first, then by name."""
    streams = Stream.objects.filter(agent=OuterRef("pk")).order_by().values("agent")
    agents = Agent.objects.annotate(
        event_count=Subquery(streams.annotate(n=Sum("head")).values("n")),
        last_event_at=Subquery(streams.annotate(n=Max("last_at")).values("n")),
        chats=Count("chat"),
        open_chats=Count("chat", filter=Q(chat__closed=False)),
    ).order_by("-connected", "name")
    return [_row(agent) for agent in agents[:limit]]


def stream_find(project: int, agent: str, epoch: str) -> StreamHandle | None:
    """Where an agent that posts over HTTP writes; None where it is new."""
    stream = (
        Stream.objects.select_related("agent")
        .filter(agent__project_id=project, agent__name=agent, epoch=epoch)
        .first()
    )
    if stream is None:
        return None
    return StreamHandle(project, stream.agent_id, stream.pk, stream.agent.name, epoch=epoch)


def fleet_outcomes(hours: int = 1, now: int | None = None) -> dict[str, int]:
    """Compaction outcomes of the last hours over all chats."""
    since = (now_ms() if now is None else now) - hours * HOUR_MS
    rows = CompactionAttempt.objects.filter(at__gte=since).order_by().values_list("outcome")
    return dict(rows.annotate(n=Count("id")))


def _row(agent: Agent) -> AgentRow:
    caps = msgspec.json.decode(agent.caps)
    return AgentRow(
        id=agent.pk,
        name=agent.name,
        runtime=agent.runtime,
        runtime_version=agent.runtime_version,
        sdk=agent.sdk,
        commands=tuple(caps.get("commands", ())),
        fallback=str(caps.get("fallback", "none")),
        text=str(caps.get("text", "excerpt")),
        read_only=bool(caps.get("read_only", False)),
        connected=agent.connected,
        connected_at=agent.connected_at,
        disconnected_at=agent.disconnected_at,
        disconnect_reason=agent.disconnect_reason,
        last_event_at=getattr(agent, "last_event_at", None),
        skew_ms=agent.skew_ms,
        events=getattr(agent, "event_count", None) or 0,
        duplicates=agent.duplicates,
        conflicts=agent.conflicts,
        rejects=agent.rejects,
        gaps=agent.gaps,
        chats=getattr(agent, "chats", 0),
        open_chats=getattr(agent, "open_chats", 0),
        created_at=agent.created_at,
    )
