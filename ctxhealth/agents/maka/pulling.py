"""Pulls what is new of one session, page by page, so that a long one is never held whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxhealth.agents.maka.frames import Frame, HostSaid, Messages, page_request
from ctxhealth.agents.maka.host import PAGE_BYTES
from ctxhealth.agents.maka.inbox import Subscription
from ctxhealth.agents.maka.known import Known
from ctxhealth.agents.maka.session import Pulled

_SUMMARIZERS = ("history_compact", "semantic_compact")
# These are of the whole connection, not of one question.
_LOUD = ("unauthorized", "host_draining")


class Puller:
    """One look at a session over its own connection. Raises HostSaid or Ended."""

    def __init__(self, subscription: Subscription, known: Known) -> None:
        self._subscription, self._known = subscription, known
        self._link, self._session = subscription.link, subscription.session

    def pages(self, item: Frame | None, at: int) -> Iterator[Pulled]:
        """What to fold into the session, in order; the last one with what is true now."""
        through = self._subscription.through
        after, cursor = self._known.cursor, None
        messages = Messages()
        while through is not None and (after is None or after < through):
            page = self._page(through, None if cursor else after, cursor)
            found = list(messages.take(page["fragments"]))
            cursor = page["nextCursor"]
            pulled = self._with_traces(Pulled(at, item, found))
            if cursor is None:
                yield self._now(pulled)
                return
            yield pulled
        yield self._now(self._with_traces(Pulled(at, item)))

    def _page(self, through: int, after: int | None, cursor: str | None) -> Frame:
        fields = {
            **page_request(self._subscription.name, through, after),
            "cursor": cursor, "maxBytes": PAGE_BYTES,
        }  # fmt: skip
        page: Frame = self._link.ask("session.transcript.page", **fields)
        return page

    def _with_traces(self, pulled: Pulled) -> Pulled:
        """The requests of every turn that these messages are of, and of the one that runs."""
        turns = dict.fromkeys(
            str(message["turnId"]) for _, message in pulled.messages if message.get("turnId")
        )
        if self._known.turn is not None:
            turns[self._known.turn.id] = None
        for turn in turns:
            if turn in self._known.ended:
                continue
            trace = self._trace(turn, pulled)
            if trace is not None:
                pulled.traces[turn] = trace
                found = self._checkpoints(trace) if self._folds(trace) else None
                if found is not None:
                    pulled.checkpoints[turn] = found
        return pulled

    def _now(self, pulled: Pulled) -> Pulled:
        pulled.root = self._subscription.root
        known = self._known
        if pulled.messages or pulled.traces or pulled.untraced or not known.opened:
            found = self._ask("context.diagnostics.query", sessionId=self._session)
            pulled.diagnostics = found
        return pulled

    def _trace(self, turn: str, pulled: Pulled) -> Frame | None:
        """None where the host has none yet; a long turn's is too large for it to tell."""
        try:
            found = self._link.ask(
                "execution.inspect.query", kind="turn_trace", sessionId=self._session, turnId=turn
            )
        except HostSaid as error:
            if error.code in _LOUD:
                raise
            if error.code == "invalid_request":
                pulled.untraced.add(turn)
            return None
        trace: Frame = found["turn"]
        return trace

    def _folds(self, trace: Frame) -> bool:
        """Whether there are summarizer calls in it that were not told yet."""
        turn = self._known.turn
        told = set(turn.attempts) if turn is not None and turn.id == trace.get("turnId") else set()
        waits = turn is not None and turn.fold is not None
        return waits or any(
            f"{attempt['attemptId']}." not in told
            for step in trace.get("steps", [])
            if step.get("callKind") in _SUMMARIZERS
            for attempt in step.get("attempts", [])
        )

    def _checkpoints(self, trace: Frame) -> list[str] | None:
        """Those written in this run; None where the host does not tell."""
        run = str(trace.get("runId"))
        found = self._ask(
            "execution.inspect.query", kind="agent_run", sessionId=self._session, agentRunId=run
        )
        if found is None:
            return None
        written = found["document"].get("compactionCheckpoints") or []
        return [str(each["checkpointId"]) for each in written]

    def _ask(self, operation: str, **fields: Any) -> Any:
        """The result; None where the host has nothing to say of it."""
        try:
            return self._link.ask(operation, **fields)
        except HostSaid as error:
            if error.code in _LOUD:
                raise
            return None
