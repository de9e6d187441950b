"""Since when something hangs or nothing happens, and when a tick must look at it again."""

from __future__ import annotations

from typing import NamedTuple

from ctxhealth.core.meter import median
from ctxhealth.core.model import AttemptView
from ctxhealth.core.parts import OpenRequest
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState


class Hanging(NamedTuple):
    """``what``: request or compaction; hung from ``due`` on, in server ms."""

    what: str
    name: str
    since: int
    due: int


def hung_since(state: ChatState, thresholds: Thresholds) -> Hanging | None:
    """What is open and would hang first; None while nothing is open or it cannot be known."""
    if state.link.closed or state.link.state in ("late", "offline"):
        return None
    found: list[Hanging] = []
    limit = patience(state, thresholds)
    for name, sent in state.requests.open.items():
        if not sent.over:
            due = request_due(sent, limit, thresholds)
            found.append(Hanging("request", name, sent.at, due))
    for name, view in state.compactions.running.items():
        due = attempt_due(state, view, limit)
        found.append(Hanging("compaction", name, view.started_at or 0, due))
    if not found:
        return None
    first = min(found, key=lambda entry: entry.due)
    return first._replace(due=max(first.due, arrival(state, first.since, thresholds)))


def request_due(sent: OpenRequest, limit: int, thresholds: Thresholds) -> int:
    """Until when a reply may take, where ``limit`` is the chat's patience; server ms."""
    return sent.at + max(limit, writing_time(sent.max_output, thresholds))


def attempt_due(state: ChatState, view: AttemptView, limit: int) -> int:
    """Until when a started attempt may take: its lease, else the chat's patience."""
    return state.compactions.leases.get(view.attempt, (view.started_at or 0) + limit)


def arrival(state: ChatState, since: int, thresholds: Thresholds) -> int:
    """Until when the end of what began at ``since`` may still arrive after a reconnect."""
    link = state.link
    if not link.connected or link.read_only or link.since is None or since >= link.since:
        return since
    return link.since + thresholds.backlog_ms


def writing_time(output: int | None, thresholds: Thresholds) -> int:
    """Milliseconds that a reply of ``output`` tokens, the request's own cap, may take."""
    if output is None:
        return 0
    return min(output * 1000 // thresholds.output_a_second, thresholds.hung_longest_ms)


def patience(state: ChatState, thresholds: Thresholds) -> int:
    """How long a request may take in this chat: max(180 s, 5 x its median)."""
    durations = state.requests.durations
    usual = median(durations) * thresholds.hung_medians if durations else 0
    return max(thresholds.hung_ms, usual)


def quiet_since(state: ChatState) -> int | None:
    """Since when a waiting user's chat has nothing under way; None when that is not so."""
    turns = state.turns
    if turns.waiting_since is None or state.link.closed:
        return None
    if state.compactions.running or state.history.open_calls:
        return None
    if not all(sent.over for sent in state.requests.open.values()):
        return None
    if turns.open and state.last_event_at is not None:
        # A call that the agent does not report may run inside an open turn.
        return max(turns.waiting_since, state.last_event_at)
    return turns.waiting_since


def unanswered_due(state: ChatState, thresholds: Thresholds) -> int | None:
    """When nobody answers a waiting user; None while that is not so or cannot be known.

    An agent that is away, or that came back a moment ago, may have answered meanwhile.
    """
    since, link = quiet_since(state), state.link
    if since is None or link.offline:
        return None
    due = since + thresholds.unanswered_ms
    if "unanswered" in state.findings:
        return due
    return None if link.state == "late" else max(due, arrival(state, since, thresholds))


def offline_after(state: ChatState, thresholds: Thresholds) -> int:
    """Milliseconds without a connection after which a troubled chat's agent is offline."""
    return thresholds.restart_ms if state.link.restarted else thresholds.offline_ms


def is_followed(state: ChatState, thresholds: Thresholds, at: int) -> bool:
    """False for a transcript that nobody is writing any more, and for posts that ended."""
    link = state.link
    if not link.read_only and link.state not in ("imported", "posts"):
        return True
    if link.closed or state.last_event_at is None:
        return False
    return at - state.last_event_at <= thresholds.live_transcript_ms
