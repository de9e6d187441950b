"""Whether somebody is still there: a chat that is going on, or what is left of one."""

from __future__ import annotations

from ctxhealth.core.model import ChatSummary, Connection
from ctxhealth.core.rules import Thresholds

ENDED = frozenset({Connection.IMPORTED, Connection.CLOSED})
FOLLOWED_MS = Thresholds().live_transcript_ms


def waits(summary: ChatSummary, now: int) -> bool:
    """Whether a user waits at ``now`` (server ms): not in a chat that ended, nor in a
    transcript that nobody has written for an hour."""
    if summary.waiting_since is None or summary.connection in ENDED:
        return False
    if summary.connection not in (Connection.READ_ONLY, Connection.POSTS):
        return True
    last = summary.last_event_at
    return last is not None and now - last <= FOLLOWED_MS
