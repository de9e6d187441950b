"""What must stay at the end of a history: the system prompt at its head, the last user message.

Rests on membership alone (``order``, ``removed``) and on ids that were seen before; an agent that
sends none leaves these unknown.
"""

from __future__ import annotations

from ctxhealth.core.parts import History
from ctxhealth.core.state import ChatState
from ctxhealth.wire.events import MessageAdded
from ctxhealth.wire.parts import SnapshotItem

USERS = 8


def user_message(history: History, event: MessageAdded) -> None:
    """A user's message: the newest one is what the agent must act on."""
    if event.id in history.last_users:
        history.last_users.remove(event.id)
    history.last_users.append(event.id)
    if len(history.last_users) > USERS:
        del history.last_users[0]
    history.lost_tail = history.stale_tail = None


def forget_members(history: History) -> None:
    """A new process tells its history anew: what it does not take up was not lost by folding."""
    history.last_users.clear()
    history.had_system = history.lost_system = False
    history.lost_tail = history.stale_tail = None


def watch_order(history: History, order: list[SnapshotItem], first: bool, whole: bool) -> None:
    """Follow a snapshot's order, part by part; judge it when the whole was seen."""
    if first:
        history.order_system, history.order_user, history.order_newest = False, None, False
    newest = history.last_users[-1] if history.last_users else None
    for item in order:
        if item.role == "system":
            history.order_system = True
        elif item.role == "user":
            history.order_user = item.id
            if item.id == newest:
                history.order_newest = True
    if whole:
        _judge_order(history, newest)


def _judge_order(history: History, newest: str | None) -> None:
    history.lost_system = history.had_system and not history.order_system
    history.had_system = history.had_system or history.order_system
    if newest is None:
        return
    history.lost_tail = None if history.order_newest or not history.compacted else newest
    # Only an older message that we know stands last is stale; a reminder of the agent is not.
    last = history.order_user
    stale = history.order_newest and last != newest and last in history.last_users
    history.stale_tail = last if stale else None


def watch_removed(state: ChatState, gone: set[str]) -> None:
    """A compaction took the message that somebody waits to have answered."""
    history = state.history
    newest = history.last_users[-1] if history.last_users else None
    if newest in gone and state.turns.waiting_since is not None and not state.link.read_only:
        history.lost_tail = newest
