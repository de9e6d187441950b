"""The operator's commands that Reasonix can carry out, and in words why it cannot the others."""

from __future__ import annotations

from typing import Any, Protocol

from ctxhealth.agents.reasonix.bridge import Bridge
from ctxhealth.agents.reasonix.host import NotAllowed, NotThere, Unreachable
from ctxhealth.agents.reasonix.session import Session
from ctxhealth.client import CommandContext, Failed, Refused, Reporter

COMMANDS = ("compact_summarize", "stop_turn")
_RECEIPT_S = 5.0
_STOP_S = 30.0
_BUSY = "while a turn is running"
_BY_HAND = {
    "clear_latch": (
        "Reasonix has no way to clear its stuck state from outside. Force its own compaction: it "
        "runs whatever is stuck; any new message changes the input and frees it too."
    ),
    "compact_fallback": (
        "Reasonix keeps its history to itself. Force its own compaction; where its summarizer is "
        "down, repair that or give it another model with /model, or begin a new session with /new."
    ),
}


class _Ask(Protocol):
    def __call__(self, session: str) -> tuple[int, str]: ...


class Orders:
    """Handlers for one bridge; each runs in a thread of its own."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def serve(self, reporter: Reporter) -> None:
        reporter.on("compact_summarize", self.compact, manual_start=True)
        reporter.on("stop_turn", self.stop, manual_start=True)
        for kind, said in _BY_HAND.items():
            reporter.on(kind, _refuse(said), manual_start=True)

    def compact(self, context: CommandContext) -> dict[str, Any]:
        """Reasonix's own compaction; its real outcome is the receipt's."""
        session = self._open(context)
        context.wait_until(lambda: not session.is_running(), "a turn is running")
        self._open(context)
        context.start()
        ended = session.attempts.ended
        status, said = self._ask(self._bridge.host.compact, session)
        if status != 204:
            self._not_compacted(session, status, said, ended)
        self._bridge.wait(lambda: session.attempts.ended > ended, _RECEIPT_S)
        return _outcome(session, ended)

    def _not_compacted(self, session: Session, status: int, said: str, ended: int) -> None:
        if status == 409:
            raise Refused("stale", said)
        if _BUSY in said:
            raise Refused("busy", said)
        with self._bridge.changed:
            # The reason of a provider's refusal stands in this answer alone.
            session.attempts.answer = said
        self._bridge.wait(lambda: session.attempts.ended > ended, _RECEIPT_S)
        with self._bridge.changed:
            session.attempts.answer = None
        raise Failed(said or f"Reasonix answered {status}")

    def stop(self, context: CommandContext) -> dict[str, Any]:
        """End the running turn as its user would."""
        session = self._open(context)
        turn = session.turn
        if turn is None:
            raise Refused("stale", "no turn is running")
        context.start()
        status, said = self._ask(lambda id: self._bridge.host.post("/cancel", id), session)
        if status == 409:
            raise Refused("stale", said)
        if status >= 300:
            raise Failed(said or f"Reasonix answered {status}")
        if not self._bridge.wait(lambda: session.turn != turn, _STOP_S):
            raise Failed("Reasonix was asked to stop, and the turn still runs")
        return {"detail": {"turn": turn}}

    def _open(self, context: CommandContext) -> Session:
        """The chat's session, where it is the one that is open. Raises Refused."""
        bridge = self._bridge
        if not bridge.connected:
            raise Refused("busy", "Reasonix does not answer")
        session = bridge.session(context.chat)
        if session is None or context.chat != bridge.current:
            raise Refused("stale", "another session is open in Reasonix: open this one there first")
        return session

    def _ask(self, ask: _Ask, session: Session) -> tuple[int, str]:
        try:
            return ask(session.id)
        except NotThere as error:
            raise Refused("unsupported", f"this Reasonix offers no {error}") from error
        except NotAllowed as error:
            raise Failed("Reasonix does not take the bridge's token") from error
        except Unreachable as error:
            raise Failed(f"Reasonix broke off before it said how it went: {error}") from error


def _outcome(session: Session, ended: int) -> dict[str, Any]:
    """Reasonix said that it is done; whether anything was gained, its receipt says."""
    last = session.attempts.last
    if session.attempts.ended == ended or last is None:
        return {"detail": "Reasonix reports it done; its receipt was not seen"}
    before, after = last.get("before"), last.get("after")
    if last["reported"] != "applied" or (before is not None and after == before):
        raise Failed(str(last.get("said") or last.get("reason") or "nothing was freed"))
    return {"before": before, "after": after}


def _refuse(said: str) -> Any:
    def refuse(context: CommandContext) -> None:
        raise Refused("unsupported", said)

    return refuse
