"""When the server must look at a chat again although nothing arrives from its agent."""

from __future__ import annotations

from ctxhealth.core.folding.context import is_troubled
from ctxhealth.core.incidents import incident_due
from ctxhealth.core.rules import Rules
from ctxhealth.core.state import ChatState
from ctxhealth.core.timing import hung_since, offline_after, unanswered_due


def next_deadline(state: ChatState, rules: Rules) -> int | None:
    """Server ms at which a ``server.tick`` is due in this chat; None for an idle healthy one.

    Every deadline is looked at once: those at or before the last tick are past.
    """
    thresholds = rules.thresholds
    found: list[int] = []
    hanging = hung_since(state, thresholds)
    if hanging is not None and "hung" not in state.findings:
        found.append(hanging.due)
    unanswered = unanswered_due(state, thresholds)
    if unanswered is not None and "unanswered" not in state.findings:
        found.append(unanswered)
    found += state.compactions.leases.values()
    found += [r.until for r in state.latches.open.values() if r.until is not None]
    link = state.link
    if link.state == "late" and link.since is not None and is_troubled(state):
        found.append(link.since + offline_after(state, thresholds))
    due = incident_due(state, thresholds)
    if due is not None:
        found.append(due)
    ahead = [at for at in found if at > state.ticked_at]
    return min(ahead) if ahead else None
