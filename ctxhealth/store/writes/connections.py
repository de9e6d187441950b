"""The history of an agent's connections: from each hello to its end, the newest ones kept."""

from __future__ import annotations

from ctxhealth.store.models import Agent, AgentConnection

KEPT = 50
# Pruned now and then, so that an agent that comes back all the time costs one row each time.
PRUNED_EVERY = 10


def connection_began(agent: Agent, now: int) -> None:
    """Note the connection that the agent's row describes; an older one that is open ends here."""
    connection_ended(agent.pk, now, "replaced")
    AgentConnection.objects.create(
        agent=agent,
        conn_no=agent.conn_no,
        runtime_version=agent.runtime_version,
        sdk=agent.sdk,
        epoch=agent.epoch,
        skew_ms=agent.skew_ms,
        connected_at=now,
    )
    if agent.conn_no % PRUNED_EVERY == 0:
        AgentConnection.objects.filter(agent=agent, conn_no__lte=agent.conn_no - KEPT).delete()


def connection_ended(agent: int, now: int, reason: str) -> None:
    AgentConnection.objects.filter(agent_id=agent, ended_at=None).update(
        ended_at=now, reason=reason[:200]
    )
