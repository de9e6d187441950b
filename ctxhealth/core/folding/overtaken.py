"""What a chat left open and went on without: nobody waits for its end any more.

An end may have been lost on the way, or with the process that would have told it. An open request
or attempt that is past its time is held against a chat only until something that began after it
came to its end.
"""

from __future__ import annotations

import msgspec

from ctxhealth.core.folding.context import Context
from ctxhealth.core.model import Outcome
from ctxhealth.core.state import ChatState
from ctxhealth.core.timing import attempt_due, patience, request_due


def overtake_requests(state: ChatState, seq: int, context: Context) -> None:
    """A request that left at ``seq`` was answered: earlier ones past their time are over."""
    thresholds, limit = context.rules.thresholds, patience(state, context.rules.thresholds)
    for sent in state.requests.open.values():
        if sent.seq < seq and not sent.utility:
            sent.over |= context.at >= request_due(sent, limit, thresholds)


def overtake_all(state: ChatState, seq: int, context: Context) -> None:
    """A turn that began at ``seq`` was answered: summaries and attempts from before it too."""
    thresholds, limit = context.rules.thresholds, patience(state, context.rules.thresholds)
    for sent in state.requests.open.values():
        if sent.seq < seq:
            sent.over |= context.at >= request_due(sent, limit, thresholds)
    compactions = state.compactions
    for name, view in list(compactions.running.items()):
        begun = view.started_seq is not None and view.started_seq < seq
        if begun and context.at >= attempt_due(state, view, limit):
            del compactions.running[name]
            compactions.leases.pop(name, None)
            timed_out = msgspec.structs.replace(view, outcome=Outcome.TIMED_OUT)
            context.changes.attempts[name] = timed_out
