"""Follows one running Reasonix: a thread reads its stream, another one looks after the rest."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ctxhealth.agents.bridging import UNREADABLE, CannotBridge, Line, Words
from ctxhealth.agents.reasonix.host import Host, NotAllowed, NotThere, Unreachable
from ctxhealth.agents.reasonix.looking import caught_up, facts_of, introduced, mended, reported
from ctxhealth.agents.reasonix.session import Event, Session

REFUSED = 3
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 15.0
_LOOK_S = 15.0
# A restart takes seconds; what is away longer is shown as away.
_AWAY_S = 20.0
_TABLE = (
    "CREATE TABLE IF NOT EXISTS reasonix_sessions("
    "session TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID"
)
_KEEP = "INSERT OR REPLACE INTO reasonix_sessions VALUES (?, ?)"
_COUNTED = ("turn.ended", "compaction.finished")


class Bridge:
    """``changed`` guards the sessions and wakes those who wait for one of them."""

    def __init__(self, host: Host, line: Line, words: Words) -> None:
        self.host = host
        self.changed = threading.Condition(threading.RLock())
        self.current: str | None = None
        self.connected = False
        self._line, self._words = line, words
        self._sessions: dict[str, Session] = {}
        self._stopped = threading.Event()
        self._fatal: CannotBridge | None = None
        self._away_since: float | None = None
        self._looked_at = 0.0
        line.tell((), [(_TABLE, ())])
        for name, state in line.rows("SELECT session, state FROM reasonix_sessions"):
            self._sessions[name] = Session(name, json.loads(state))

    # -- life

    def run(self, tick_s: float = 0.5) -> None:
        """Until interrupted or stopped. Raises CannotBridge where nothing can be done any more."""
        reader = threading.Thread(target=self._read, name="reasonix-stream", daemon=True)
        reader.start()
        try:
            while self._fatal is None and not self._stopped.is_set():
                self._line.check()
                self._look_after()
                self._stopped.wait(tick_s)
            if self._fatal is not None:
                raise self._fatal
        finally:
            self._stopped.set()

    def stop(self) -> None:
        self._stopped.set()

    def _read(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                for frame in self.host.events(self._opened):
                    self._heard(frame)
                self._lost("it closed the stream")
            except Unreachable as error:
                self._lost(str(error))
            except NotAllowed:
                self._refused()
            except NotThere as error:
                self._fail(CannotBridge(f"{self.host.url} offers no {error}: {_UNKNOWN}", REFUSED))
            except CannotBridge as error:
                self._fail(error)
            except UNREADABLE as error:
                self._lost(_unreadable(error))
            if time.monotonic() - began > _LONGEST_PAUSE_S:
                pause = _FIRST_PAUSE_S
            self._stopped.wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _refused(self) -> None:
        said = f"{self.host.url} does not take this token: see --reasonix-token-file."
        if self._looked_at == 0.0:
            self._fail(CannotBridge(said, REFUSED))
        self._words.once("reasonix", said)
        self._lost(said)

    def _fail(self, error: CannotBridge) -> None:
        self._fatal = self._fatal or error

    # -- the stream

    def _opened(self) -> None:
        with self.changed:
            self.look()
            self.connected, self._away_since = True, None
            self._words.heal("reasonix", f"Reasonix at {self.host.url} answers again.")

    def _heard(self, frame: Mapping[str, Any]) -> None:
        """One frame that cannot be read costs nothing else."""
        try:
            self._take(frame)
        except UNREADABLE as error:
            self._words.once("frame", f"A frame of Reasonix is left out: {_unreadable(error)}.")

    def _take(self, frame: Mapping[str, Any]) -> None:
        if frame.get("kind") == "session_changed":
            self.look()
            return
        name = frame.get("sessionId")
        if not isinstance(name, str) or not name:
            return
        with self.changed:
            session = self._session(name)
            events = session.frame(frame, _now_ms())
            self._tell(session, events, keep="seq" in frame)
            if session.holes and name == self.current:
                page = self._asked("/transcript/snapshot")
                self._tell(session, session.stamped(mended(session, page), _now_ms()))
            elif any(event["type"] in _COUNTED for event in events) and name == self.current:
                self._report(session)

    def _lost(self, why: str) -> None:
        with self.changed:
            self.connected = False
            self._away_since = self._away_since or time.monotonic()
            self.changed.notify_all()
        self._words.once("reasonix", f"No connection to {self.host.url} ({why}): trying again.")

    # -- looking

    def look(self) -> None:
        """Ask for what the stream does not say, and for what it said unheard."""
        status = self._asked("/status")
        runtime = status.get("runtimeState")
        if not isinstance(runtime, Mapping) or not runtime.get("sessionId"):
            raise CannotBridge(f"{self.host.url} is no Reasonix: {_UNKNOWN}", REFUSED)
        with self.changed:
            self._looked_at = time.monotonic()
            session = self._session(str(runtime["sessionId"]))
            self._leave(session)
            context = self._asked("/context")
            facts = facts_of(
                status, context, self._asked("/models"), self._asked("/sessions", list)
            )
            events = introduced(session, facts)
            events += caught_up(session, status, self._asked("/transcript/snapshot") or None)
            self._tell(session, session.stamped([*events, *reported(context)], _now_ms()))

    def _leave(self, session: Session) -> None:
        """Another session is open now: those before take no commands until they are again."""
        self.current = session.id
        others = [other for other in self._sessions.values() if other is not session]
        running = _running(self._asked("/runtime-states")) if others else set()
        for other in others:
            if other.id not in running:
                self._close(other, "another session is open in Reasonix")

    def _close(self, session: Session, why: str) -> None:
        if session.facts is None:
            return
        ends = [*session.calls.unseen(), *session.end("interrupted")]
        session.facts = None
        closing: Event = {"type": "chat.closed", "reason": why}
        self._tell(session, session.stamped([*ends, closing], _now_ms()))

    def _asked(self, path: str, shape: type = dict) -> Any:
        """What this version does not offer, or offers in another shape, is unknown: empty."""
        try:
            found = self.host.get(path)
        except NotThere:
            return shape()
        return found if isinstance(found, shape) else shape()

    def _report(self, session: Session) -> None:
        try:
            context = self._asked("/context")
        except (Unreachable, NotAllowed):
            return
        self._tell(session, session.stamped(reported(context), _now_ms()))

    def _look_after(self) -> None:
        """Once every tick: ends that nobody tells, a session that is away, another look."""
        with self.changed:
            now = _now_ms()
            for session in self._sessions.values():
                self._tell(session, session.tick(now))
            if self._away_since is not None and time.monotonic() - self._away_since > _AWAY_S:
                self._gone()
            if not self.connected or time.monotonic() - self._looked_at < _LOOK_S:
                return
            self._looked_at = time.monotonic()
        self._compare()

    def _gone(self) -> None:
        session = self._sessions.get(self.current or "")
        if session is not None and session.facts is not None:
            self._close(session, "Reasonix does not answer")

    def _compare(self) -> None:
        """A process or a session that changed without a word is looked at anew."""
        try:
            runtime = self._asked("/status").get("runtimeState") or {}
            with self.changed:
                session = self._sessions.get(self.current or "")
                same = session is not None and session.runtime == runtime.get("runtimeEpoch")
            if not same or runtime.get("sessionId") != self.current:
                self.look()
        except (Unreachable, NotAllowed):
            # The thread that reads the stream says so, and comes back.
            return
        except UNREADABLE as error:
            self._words.once("answer", f"An answer of Reasonix is left out: {_unreadable(error)}.")

    # -- keeping

    def session(self, name: str | None) -> Session | None:
        return self._sessions.get(name or "")

    def _session(self, name: str) -> Session:
        return self._sessions.setdefault(name, Session(name))

    def _tell(self, session: Session, events: list[Event], *, keep: bool = False) -> None:
        """``events`` and the session's state go to the disk together."""
        if not events and not keep:
            return
        if events and session.facts is None and events[-1]["type"] != "chat.closed":
            events = [*session.stamped(introduced(session, {}), _now_ms()), *events]
        kept = json.dumps(session.state(), separators=(",", ":"))
        self._line.tell(events, [(_KEEP, (session.id, kept))])
        with self.changed:
            self.changed.notify_all()

    def wait(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Block until ``ready()``; False where it did not come true in time."""
        with self.changed:
            return self.changed.wait_for(ready, seconds)


_UNKNOWN = "this bridge is tested with Reasonix 1.38"


def _unreadable(error: BaseException) -> str:
    return f"it cannot be read ({type(error).__name__}: {error})"


def _running(states: Any) -> set[str]:
    """The sessions that work in the background as well."""
    rows = states.get("sessions") if isinstance(states, Mapping) else None
    found = [row.get("state") or {} for row in rows or () if isinstance(row, Mapping)]
    return {str(state.get("sessionId")) for state in found if state.get("running")}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
