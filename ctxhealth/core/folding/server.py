"""Connections, ticks, and what did not arrive whole."""

from __future__ import annotations

from ctxhealth.core.folding.compaction import expire_leases
from ctxhealth.core.folding.context import Context, is_troubled
from ctxhealth.core.folding.latches import end_cooldowns, end_scope, refresh_latches
from ctxhealth.core.folding.tails import forget_members
from ctxhealth.core.limits import settle_limits
from ctxhealth.core.parts import TEXT
from ctxhealth.core.state import ChatState
from ctxhealth.core.timing import offline_after
from ctxhealth.core.wording import clip
from ctxhealth.wire.events import (
    Gap,
    Note,
    ServerConnected,
    ServerDisconnected,
    ServerTick,
)

UNREADABLE = frozenset({"unreadable_line", "unreadable"})
REJECTED = frozenset({"rejected", "rejected_event"})
CONFLICT = "conflict"


def on_server_connected(state: ChatState, event: ServerConnected, context: Context) -> None:
    link = state.link
    if event.epoch is not None and link.epoch is not None and event.epoch != link.epoch:
        _restarted(state, context)
    if event.epoch is not None:
        link.epoch = event.epoch
    link.connected, link.read_only = True, event.read_only
    link.state = "posts" if event.posts else "read_only" if event.read_only else "live"
    link.since, link.conn_no = context.at, event.conn_no
    link.commands = [command[:60] for command in event.commands[:50]]
    link.skew_ms = event.skew_ms
    link.offline = link.restarted = False
    # Overrides may have changed while nothing was folded.
    settle_limits(state, context.rules)
    # What can be done about a latch depends on what this connection offers.
    refresh_latches(state, context)
    context.changes.facts = True


def on_server_disconnected(state: ChatState, event: ServerDisconnected, context: Context) -> None:
    """A healthy chat is offline at once; one in trouble is late first, then a tick decides."""
    link = state.link
    if event.conn_no < link.conn_no:
        context.odd(f"connection {event.conn_no} ended after {link.conn_no} began")
        return
    link.connected, link.restarted = False, event.restart
    link.since = context.at
    if link.read_only:
        link.state = "imported"
    else:
        link.state = "late" if is_troubled(state) else "offline"
    refresh_latches(state, context)
    context.changes.facts = True


def on_server_tick(state: ChatState, event: ServerTick, context: Context) -> None:
    """A deadline passed: leases, timers and connections are looked at again."""
    state.ticked_at = max(state.ticked_at, context.at)
    expire_leases(state, context)
    end_cooldowns(state, context)
    link = state.link
    if link.state == "late" and link.since is not None:
        wait = offline_after(state, context.rules.thresholds)
        link.offline = context.at - link.since >= wait
        if link.offline:
            link.state = "offline"
    context.changes.facts = True


def on_gap(state: ChatState, event: Gap, context: Context) -> None:
    """The agent dropped events on purpose and says so."""
    state.intake.gaps += event.count
    state.intake.gap_reason = clip(event.reason, TEXT)
    _doubt_pairs(state)
    context.changes.facts = True


def on_note(state: ChatState, event: Note, context: Context) -> None:
    intake = state.intake
    if event.code in UNREADABLE:
        intake.unreadable += event.count or 1
        _doubt_pairs(state)
        context.changes.facts = True
    elif event.code == CONFLICT:
        intake.conflicts += event.count or 1
        intake.conflict = clip(event.text, TEXT)
    elif event.code in REJECTED:
        take_rejected(state, event.text)


def take_rejected(state: ChatState, code: str) -> None:
    """An event of this chat could not be understood; its tombstone stands in the log."""
    state.intake.rejects += 1
    state.intake.reject_code = clip(code, TEXT)
    _doubt_pairs(state)


def _doubt_pairs(state: ChatState) -> None:
    """What is missing may hold calls or results: from here on an odd half proves nothing."""
    state.history.calls_lost += 1


def _restarted(state: ChatState, context: Context) -> None:
    """A new process: what the old one had open will not be answered."""
    state.requests.open.clear()
    state.compactions.running.clear()
    state.compactions.leases.clear()
    state.turns.open = False
    forget_members(state.history)
    end_scope(state, context, ("step", "send", "turn", "process"), "restart")
