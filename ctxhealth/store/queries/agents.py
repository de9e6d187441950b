"""Agents and what the fleet's compactions came to."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery, Sum

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
    imported: bool
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

    @property
    def ended(self) -> bool:
        """A session file that was read to its end: nothing more is awaited."""
        said = self.disconnect_reason.startswith("bye")
        return self.imported or (not self.connected and self.read_only and said)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionFiles:
    rows: list[AgentRow]
    page: int
    pages: int
    total: int


def agents_list(limit: int = 1_000, text: str = "") -> list[AgentRow]:
    """Agents that go on, connected ones first, then by name: not those that were only files."""
    found = _named(text).exclude(_ENDED).order_by("-connected", "name")
    return [_row(agent) for agent in _counted(found)[:limit]]


def agent_get(agent_id: int) -> AgentRow | None:
    agent = _counted(Agent.objects.filter(id=agent_id)).first()
    return None if agent is None else _row(agent)


def session_files(page: int = 1, per_page: int = 50, text: str = "") -> SessionFiles:
    """Agents that are session files, read to their end: imported ones, and those that ``tail``
    and ``watch`` sent and said good-bye. The newest first; ``page`` from 1."""
    found = _named(text).filter(_ENDED).order_by("-disconnected_at", "-id")
    total = found.count()
    pages = max(1, -(-total // per_page))
    page = min(max(1, page), pages)
    rows = _counted(found)[(page - 1) * per_page : page * per_page]
    return SessionFiles(rows=[_row(row) for row in rows], page=page, pages=pages, total=total)


# Read-only agents that said good-bye: nothing is missing there, nobody is waited for.
_ENDED = Q(imported=True) | Q(
    connected=False, caps__contains='"read_only":true', disconnect_reason__startswith="bye"
)


def _named(text: str) -> QuerySet[Agent]:
    if not text:
        return Agent.objects.all()
    return Agent.objects.filter(Q(name__icontains=text) | Q(runtime__icontains=text))


def _counted(agents: QuerySet[Agent]) -> QuerySet[Agent]:
    streams = Stream.objects.filter(agent=OuterRef("pk")).order_by().values("agent")
    return agents.annotate(
        event_count=Subquery(streams.annotate(n=Sum("head")).values("n")),
        last_event_at=Subquery(streams.annotate(n=Max("last_at")).values("n")),
        chats=Count("chat"),
        open_chats=Count("chat", filter=Q(chat__closed=False)),
    )


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
        imported=agent.imported,
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
