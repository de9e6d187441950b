"""Incidents in the fold: one opens with a critical finding and closes after lasting calm.

Called after an event only while a chat is critical or an incident is open, so that every other
chat pays nothing for it.
"""

from __future__ import annotations

from ctxhealth.core.findings.definition import CRITICAL, WARNING
from ctxhealth.core.findings.judge import ROWS, counted
from ctxhealth.core.folding.context import Context
from ctxhealth.core.incidents_causes import RANK
from ctxhealth.core.incidents_evidence import (
    gather,
    take_attempts,
    take_findings,
    take_latches,
)
from ctxhealth.core.incidents_given import earlier_commands, take_command
from ctxhealth.core.incidents_parts import OpenIncident
from ctxhealth.core.incidents_root import revise_root, settle_root
from ctxhealth.core.incidents_view import incident_view
from ctxhealth.core.model import State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.timing import is_followed

_CALM = frozenset({State.HEALTHY.value, State.WATCH.value})
# Events that change nothing but findings: most of a chat's.
_NARROW = frozenset({"message", "sent", "started"})
# The server's own, with which a transcript or a chat may turn out to have ended.
_ENDING = frozenset({"tick", "link"})


def follow(state: ChatState, group: str, context: Context) -> None:
    """Carry the chat's incident on after an event of ``group`` was folded and judged."""
    incident = state.incident
    if incident is not None:
        _close_if_over(state, incident, group, context)
        incident = state.incident
    if incident is None:
        if state.severity == CRITICAL and not _has_ended(state, context):
            state.incident = _opened(state, context)
            context.changes.facts = context.changes.incident_touched = True
        return
    changed = group not in _NARROW and _take_rest(state, incident, group, context)
    if context.judged and take_findings(state, incident, context):
        revise_root(state, incident, context)
        changed = True
    if state.replies.unusable_row > incident.unusable:
        incident.unusable, changed = state.replies.unusable_row, True
    changed |= _take_worst(state, incident)
    changed |= _take_calm(state, incident, context)
    if changed:
        context.changes.incident_touched = True


def _take_rest(state: ChatState, incident: OpenIncident, group: str, context: Context) -> bool:
    changed = take_latches(state, incident, context)
    changed |= take_attempts(state, incident, context)
    return changed | (group == "none" and take_command(state, incident, context))


def _take_worst(state: ChatState, incident: OpenIncident) -> bool:
    """The state that stands furthest up of all that were critical."""
    if state.state == incident.worst or state.severity != CRITICAL:
        return False
    if ROWS[State(state.state)] >= ROWS[State(incident.worst)]:
        return False
    incident.worst = state.state
    return True


def incident_due(state: ChatState, thresholds: Thresholds) -> int | None:
    """Server ms at which the open incident must be looked at again; None where events decide."""
    incident = state.incident
    if incident is None:
        return None
    found = []
    if incident.calm_since is not None:
        found.append(incident.calm_since + thresholds.incident_calm_ms)
    if _may_just_end(state) and state.last_event_at is not None:
        found.append(state.last_event_at + thresholds.live_transcript_ms + 1)
    return min(found, default=None)


def _opened(state: ChatState, context: Context) -> OpenIncident:
    """The incident with all that was already true when its first critical finding came."""
    chain, burnt = gather(state, context)
    root, cause, first = settle_root(state, chain, context)
    incident = OpenIncident(
        opened_seq=context.seq,
        opened_at=context.at,
        started_seq=first.seq,
        started_at=first.at,
        worst=state.state,
        root=root,
        cause=cause,
        chain=chain,
        burnt=burnt,
        empties_before=state.replies.empty_total - state.replies.empty_row,
        requests_before=_requests(state),
        turns_before=state.turns.count,
        answered_before=state.turns.answered,
        unusable=state.replies.unusable_row,
        latches_seen=(state.latches.total, len(state.latches.open)),
        failing=True,
        last_attempt=state.compactions.recent[-1].attempt if state.compactions.recent else None,
    )
    earlier_commands(state, incident)
    return incident


def _requests(state: ChatState) -> int:
    requests = state.requests
    return requests.answered + requests.failed


def _take_calm(state: ChatState, incident: OpenIncident, context: Context) -> bool:
    """Whether nothing of it is true any more, and since when; closes it after enough requests."""
    turns = state.turns
    was = incident.calm_since, incident.answered_at
    if state.severity == CRITICAL:
        incident.answered_at, incident.answered_before = None, turns.answered
        incident.calm_since = None
        return was != (None, None)
    if incident.answered_at is None and turns.answered > incident.answered_before:
        incident.answered_at = context.at
    if not _is_calm(state):
        incident.calm_since = None
    elif incident.calm_since is None:
        incident.calm_since = context.at
        incident.calm_requests = state.requests.answered
    elif _answered_since(state, incident) >= context.rules.thresholds.incident_calm_requests:
        _close(state, incident, context.at, "requests", context)
    return was != (incident.calm_since, incident.answered_at)


def _answered_since(state: ChatState, incident: OpenIncident) -> int:
    return state.requests.answered - incident.calm_requests


def _is_calm(state: ChatState) -> bool:
    """Healthy, watch, or recovering with the user answered; warnings that cause nothing too."""
    if state.state in _CALM:
        return True
    if state.recovery is not None:
        return state.recovery.answer
    return not any(
        code in RANK and state.findings[code].severity == WARNING for code in counted(state)
    )


def _close_if_over(state: ChatState, incident: OpenIncident, group: str, context: Context) -> None:
    """Calm for long enough before this event, or nothing more can come of it."""
    limit, calm = context.rules.thresholds.incident_calm_ms, incident.calm_since
    if calm is not None and context.at - calm >= limit:
        _close(state, incident, calm + limit, "time", context)
    elif group in _ENDING and _has_ended(state, context):
        last = context.at if state.link.closed else state.last_event_at
        _close(state, incident, max(last or 0, incident.opened_at), "ended", context)


def _has_ended(state: ChatState, context: Context) -> bool:
    return state.link.closed or not is_followed(state, context.rules.thresholds, context.at)


def _may_just_end(state: ChatState) -> bool:
    """A transcript or a chat by HTTP: nobody says that it is over."""
    return state.link.read_only or state.link.state in ("imported", "posts")


def _close(state: ChatState, incident: OpenIncident, at: int, how: str, context: Context) -> None:
    view = incident_view(state, incident, closed=(context.seq, at, how))
    context.changes.incidents_closed.append(view)
    context.changes.facts = True
    state.incident = None
