"""What a crash may have left behind, put right before the first agent comes."""

from __future__ import annotations

from django.db.models import F

from ctxhealth.core.state import FOLD_VERSION
from ctxhealth.store import unit
from ctxhealth.store.clock import now_ms
from ctxhealth.store.models import Agent, Chat, Judging
from ctxhealth.store.through import call
from ctxhealth.store.writes.agents import chats_announce, chats_await
from ctxhealth.store.writes.connections import connection_ended

REASON = "the server stopped"


def settle() -> int:
    """Nobody is connected yet: agents that the database still calls connected are not.

    Their chats hear of it too. Returns how many agents it was.
    """
    agents = list(Agent.objects.filter(connected=True).values_list("id", "conn_no"))
    for agent, conn_no in agents:
        after: int | None = 0
        while after is not None:
            after = chats_announce(
                agent=agent, conn_no=conn_no, connected=False, reason=REASON, restart=True,
                after=after,
            )  # fmt: skip
        call(_disconnected, agent)
    # Time that passed while the server was away is no agent's fault.
    waiting: int | None = 0
    while waiting is not None:
        waiting = chats_await(after=waiting)
    call(_judge_older_chats)
    return len(agents)


def _judge_older_chats() -> None:
    """Chats that another version judged are judged again beside the running server."""
    older = Chat.objects.exclude(fold_version=FOLD_VERSION).filter(chat_seq__gt=0)
    for project in list(older.order_by().values_list("project_id", flat=True).distinct()):
        Judging.objects.get_or_create(project_id=project)
        row = Judging.objects.filter(project_id=project)
        # A pass that is already wanted reaches them too.
        row.filter(wanted=F("judged")).update(wanted=F("wanted") + 1)


def _disconnected(agent: int) -> None:
    assert unit.current() is not None
    now = now_ms()
    Agent.objects.filter(id=agent).update(
        connected=False, disconnected_at=now, disconnect_reason=REASON
    )
    connection_ended(agent, now, REASON)
