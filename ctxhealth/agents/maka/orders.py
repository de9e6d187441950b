"""The operator's commands: what Maka lets a client do, and in words what it does not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from ctxhealth.agents.maka.folds import OURS
from ctxhealth.agents.maka.follower import Follower
from ctxhealth.agents.maka.frames import Frame, HostSaid
from ctxhealth.agents.maka.link import Link
from ctxhealth.agents.maka.sockets import Ended
from ctxhealth.client import CommandContext, Failed, Refused, Reporter

KINDS = ("compact_summarize", "stop_turn")
_NO_LATCH = (
    "Maka lets nobody clear a latch from outside. Stop the turn: its latch ends with it, and the "
    "next turn starts without one."
)
_NO_FALLBACK = (
    "Maka has no compaction without a summarizer. Let it compact itself while no turn runs, or "
    "start a new session in Maka from what is needed of this one."
)
_ENDED = ("completed", "failed", "cancelled")
_POLL_S = 0.2
# From the turn's end until its decision stands in the transcript.
_DECISION_S = 15.0
_SAID = {
    "session_busy": ("busy", "a turn is running in Maka: stop it, or wait for its end"),
    "session_archived": ("unsupported", "the session is archived in Maka: unarchive it there"),
    "unauthorized": ("unsupported", "the bridge's credential lacks the grant {operation}"),
    "operation_conflict": ("busy", "Maka is at something else in this session: {message}"),
    "not_found": ("stale", "Maka does not know it any more: {message}"),
}


class Orders:
    """``follower`` gives the one that follows the host now, or None while there is none."""

    def __init__(self, follower: Callable[[], Follower | None]) -> None:
        self._follower = follower

    def register(self, reporter: Reporter) -> None:
        reporter.on("compact_summarize", self.compact, manual_start=True)
        reporter.on("stop_turn", self.stop, manual_start=True)
        reporter.on("clear_latch", _refuse(_NO_LATCH), manual_start=True)
        reporter.on("compact_fallback", _refuse(_NO_FALLBACK), manual_start=True)

    # -- compact

    def compact(self, context: CommandContext) -> dict[str, Any]:
        """Maka's own compaction; its turn is named by the command, so it is never begun twice."""
        session = str(context.chat)
        follower, link = self._line(session)
        turn = OURS + re.sub(r"[^A-Za-z0-9_-]", "-", context.id)[:100]
        running = self._running(follower, session)
        if running is not None:
            raise Refused("busy", _SAID["session_busy"][1])
        context.start()
        fields = {"sessionId": session, "turnId": turn}
        answer = _ask(link, "context.compact", fields)
        snapshot = self._ended(context, session, answer, fields)
        return _result(self._outcome(session, turn, answer, snapshot), snapshot)

    def _ended(self, context: CommandContext, session: str, answer: Frame, fields: Frame) -> Frame:
        """The turn's last snapshot; asked for again over a new connection where one was lost."""
        snapshot: Frame = answer.get("turn") or answer
        while snapshot.get("status") not in _ENDED:
            if context.remaining_ms <= 0:
                raise Failed("Maka did not end the compaction within the command's lease")
            time.sleep(_POLL_S)
            try:
                _, link = self._line(session)
                snapshot = link.ask("turn.query", **fields)
            except (Ended, HostSaid, Refused):
                continue
        return snapshot

    def _outcome(self, session: str, turn: str, answer: Frame, snapshot: Frame) -> Frame:
        """What the compaction came to. That its turn was completed says nothing of it."""
        told = answer.get("outcome") or snapshot.get("contextCompactionOutcome")
        end = time.monotonic() + _DECISION_S
        while True:
            found = self._decision(session, turn)
            if found is not None:
                return found
            if time.monotonic() >= end or snapshot.get("status") != "completed":
                return _told(told)
            time.sleep(_POLL_S)

    def _decision(self, session: str, turn: str) -> Frame | None:
        follower = self._follower()
        return follower.decided.get((session, turn)) if follower else None

    # -- stop

    def stop(self, context: CommandContext) -> dict[str, Any]:
        """Ends the running turn; Maka shows it to the user as if they had pressed stop."""
        session = str(context.chat)
        follower, link = self._line(session)
        running = self._running(follower, session)
        if running is None:
            raise Refused("stale", "No turn is running in this session.")
        context.start()
        fields = {
            "sessionId": session, "turnId": running["turnId"], "runId": running["runId"],
        }  # fmt: skip
        snapshot = _ask(link, "turn.stop", fields)
        status = snapshot.get("status")
        if status in ("completed", "failed"):
            raise Failed(f"the turn had ended by itself: {status}")
        return {"detail": {"turn": running["turnId"], "status": status}}

    # -- both

    def _line(self, session: str) -> tuple[Follower, Link]:
        follower = self._follower()
        link = follower.link_of(session) if follower else None
        if follower is None or link is None:
            raise Refused("busy", "the bridge has no connection to the runtime host now")
        return follower, link

    @staticmethod
    def _running(follower: Follower, session: str) -> Frame | None:
        root = follower.root(session)
        return root if root is not None and root.get("status") not in _ENDED else None


def _refuse(words: str) -> Callable[[CommandContext], None]:
    def refuse(context: CommandContext) -> None:
        raise Refused("unsupported", words)

    return refuse


def _ask(link: Link, operation: str, fields: Frame) -> Frame:
    """Raises Refused or Failed in the operator's words."""
    try:
        found: Frame = link.ask(operation, **fields)
        return found
    except HostSaid as error:
        said = _SAID.get(error.code)
        if said is None:
            raise Failed(f"Maka refused: {error.message} ({error.code})") from error
        text = said[1].format(message=error.message, operation=operation)
        raise Refused(said[0], text) from error
    except Ended as error:
        raise Failed(f"the connection to Maka was lost while it was asked: {error}") from error


def _told(outcome: Frame | None) -> Frame:
    """The outcome that newer hosts give, in the shape of a decision."""
    words = {"compacted": "replaced", "unchanged": "unchanged", "failed": "failedOpen"}
    found = outcome or {}
    return {"word": words.get(str(found.get("kind"))), "reason": found.get("reason")}


def _result(outcome: Frame, snapshot: Frame) -> dict[str, Any]:
    word, reason = outcome.get("word"), outcome.get("reason")
    sizes = {key: outcome[key] for key in ("before", "after") if outcome.get(key) is not None}
    if word == "replaced":
        return {**sizes, "detail": {"maka": "replaced", "counted": "history, Maka's estimate"}}
    if word == "unchanged":
        raise Failed(f"Maka changed nothing: {reason}", {"maka": word, **sizes})
    if word == "failedOpen":
        raise Failed(f"Maka's compaction failed: {reason}", {"maka": word, **sizes})
    status = snapshot.get("status")
    failure = snapshot.get("failureClass") or snapshot.get("abortSource") or "no decision given"
    raise Failed(f"Maka ended the compaction ({status}) without a result: {failure}")
