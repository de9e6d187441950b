"""Follows one runtime host: which sessions there are, and what became of each since last time."""

from __future__ import annotations

import time
from collections.abc import Callable

from ctxhealth.agents.bridging import UNREADABLE
from ctxhealth.agents.maka import places
from ctxhealth.agents.maka.frames import Frame, HostSaid
from ctxhealth.agents.maka.host import CHATS_A_CONNECTION, TAIL_BYTES, Epoch
from ctxhealth.agents.maka.inbox import Inbox, News, Subscription
from ctxhealth.agents.maka.known import Known
from ctxhealth.agents.maka.link import Link
from ctxhealth.agents.maka.pulling import Puller
from ctxhealth.agents.maka.session import Pulled, look
from ctxhealth.agents.maka.sockets import Ended
from ctxhealth.agents.maka.telling import Event

DAY_MS = 86_400_000
# Twenty connections; of more sessions the newest are followed.
MOST_SESSIONS = 20 * CHATS_A_CONNECTION
_CATALOG_S = 1.0
_DECIDED = 256
# Well below the ten minutes after which a silent turn is taken for one that nobody answers.
_ALIVE_S = 240.0
_GONE = ("not_found", "session_archived")
Tell = Callable[[list[Event], list[places.Statement]], None]


class Follower:
    """``dial`` opens one more connection; ``tell`` keeps events and places together.

    ``since``: sessions last used before (ms since the epoch) are left out until they are used.
    """

    def __init__(
        self, dial: Callable[[], Link], inbox: Inbox, epoch: Epoch, known: dict[str, Known],
        tell: Tell, *, since: int = 0,
    ) -> None:  # fmt: skip
        self._dial, self._inbox, self._epoch = dial, inbox, epoch
        self.known, self._tell, self._since = known, tell, since
        self._items: dict[str, Frame] = {}
        self._catalog_at = 0.0
        self._unread: set[str] = set()
        self.links: list[Link] = []
        self._told_at: dict[str, float] = {}
        self.troubles: set[str] = set()
        # (session, turn) -> what became of a compaction that somebody asked for.
        self.decided: dict[tuple[str, str], Frame] = {}

    # -- the line to the host

    def start(self) -> None:
        """The first connection and the list of sessions. Raises as ``dial`` does, or Ended."""
        self.links = [self._dial()]
        self._list()
        self._subscribe()

    def round(self, timeout: float) -> None:
        """Wait for news and look at what changed. Raises Ended where the host is gone."""
        self.take(self._inbox.take(timeout))
        self._alive()
        if not all(link.alive for link in self.links):
            raise Ended("the host closed a connection")

    def _alive(self) -> None:
        """A turn in which the model writes for minutes tells nothing else: say that it lives."""
        now = time.monotonic()
        for session, found in self._inbox.followed().items():
            known = self.known.get(session)
            quiet = now - self._told_at.setdefault(session, now)
            if not found.heard or quiet < _ALIVE_S or known is None or known.turn is None:
                continue
            found.heard = False
            self._told_at[session] = now
            text = "Maka is writing; it tells a request's size once it is settled."
            note = {"type": "note", "ts": _now(), "chat": session, "text": text,
                    "level": "debug", "code": "writing"}  # fmt: skip
            self._tell([note], [])

    def take(self, news: News) -> None:
        self._changed(news.catalog)
        for session in news.removed:
            self._gone(session)
        for session in sorted(news.dirty):
            if session in self._items:
                self.look(session)
        self._subscribe()

    def stop(self) -> None:
        for link in self.links:
            link.close()
        self.links = []

    def link_of(self, session: str) -> Link | None:
        """A connection to ask about this session on."""
        found = self._inbox.of(session)
        if found is not None:
            return found.link
        return next((link for link in self.links if link.alive), None)

    def root(self, session: str) -> Frame | None:
        """The newest snapshot of the session's root turn."""
        found = self._inbox.of(session)
        return found.root if found else None

    # -- sessions

    def _list(self) -> None:
        fields: Frame = {"kind": "list_start"}
        found: dict[str, Frame] = {}
        while True:
            page = self.links[0].ask("session.catalog.query", **fields)
            if page["kind"] == "revision_changed":
                fields, found = {"kind": "list_start"}, {}
                continue
            found |= {item["id"]: item for item in page["sessions"] if _readable(item)}
            if page["nextCursor"] is None:
                break
            fields = {
                "kind": "list_continue", "revision": page["revision"],
                "cursor": page["nextCursor"],
            }  # fmt: skip
        self._items = found

    def _changed(self, sessions: set[str]) -> None:
        """An entry changes many times in a turn: read once a second, a new one at once."""
        self._unread |= sessions
        new = self._unread - set(self._items)
        if not self._unread or (not new and time.monotonic() < self._catalog_at + _CATALOG_S):
            return
        self._catalog_at = time.monotonic()
        sessions, self._unread = self._unread, set()
        for session in sessions:
            answer = self.links[0].ask("session.catalog.query", kind="get", sessionId=session)
            item = answer.get("session")
            if item is None:
                self._gone(session)
            elif _readable(item):
                self._items[session] = item
                self._inbox.again(session)

    def _wanted(self) -> list[str]:
        """The sessions to follow, parents first, newest first."""
        items = [
            item for item in self._items.values()
            if not item.get("isArchived") and int(item.get("lastUsedAt") or 0) >= self._since
        ]  # fmt: skip
        items.sort(key=lambda item: -int(item.get("lastUsedAt") or 0))
        items.sort(key=lambda item: bool(item.get("parentSessionId")))
        return [item["id"] for item in items[:MOST_SESSIONS]]

    def _subscribe(self) -> None:
        followed = self._inbox.followed()
        wanted = self._wanted()
        for session in set(followed) - set(wanted):
            self._leave(session)
        for session in wanted:
            if session not in followed:
                self._open(session)

    def _open(self, session: str) -> None:
        link = self._free()
        try:
            opened = link.ask(
                "subscription.open",
                sessionId=session,
                transcript={"kind": "tail", "maxBytes": TAIL_BYTES},
            )
        except HostSaid as error:
            self._refused(session, error)
            return
        transcript = opened.get("transcript") or {}
        self._inbox.add(
            Subscription(
                session, link, opened["subscriptionId"], opened["nextSequence"],
                transcript.get("throughSequence"), (opened.get("snapshot") or {}).get("rootTurn"),
            )
        )  # fmt: skip
        self.look(session)

    def _free(self) -> Link:
        """A connection that has room for one more subscription."""
        used = [each.link for each in self._inbox.followed().values()]
        for link in self.links:
            if link.alive and used.count(link) < CHATS_A_CONNECTION:
                return link
        self.links.append(self._dial())
        return self.links[-1]

    def _leave(self, session: str) -> None:
        if session in self._items and self._items[session].get("isArchived"):
            self.look(session)
        found = self._inbox.forget(session)
        if found is not None:
            try:
                found.link.ask("subscription.close", subscriptionId=found.name)
            except HostSaid:
                return

    def _gone(self, session: str) -> None:
        self._items.pop(session, None)
        self._inbox.forget(session)
        known = self.known.get(session)
        if known is not None and known.opened and not known.closed:
            known.closed = True
            event = {
                "type": "chat.closed", "ts": _now(), "chat": session, "reason": "removed in Maka"
            }  # fmt: skip
            self._tell([event], [places.keep(known)])

    def _refused(self, session: str, error: HostSaid) -> None:
        if error.code in _GONE:
            self._gone(session)
        elif error.code == "unauthorized":
            raise error
        else:
            self.troubles.add(f"{error.code}: {error.message}")

    # -- one session

    def look(self, session: str) -> None:
        """Pull what is new of it, and keep what it tells."""
        found = self._inbox.of(session)
        known = self.known.setdefault(session, Known(session))
        if found is None:
            return
        puller = Puller(found, known)
        try:
            for pulled in puller.pages(self._items.get(session), _now()):
                self._file(known, pulled)
        except HostSaid as error:
            self._refused(session, error)
        except UNREADABLE as error:
            self.troubles.add(f"its answer cannot be read ({type(error).__name__}: {error})")

    def _file(self, known: Known, pulled: Pulled) -> None:
        before = known.saved()
        try:
            events = look(known, self._epoch, pulled)
        except UNREADABLE:
            # Half of it may have been taken in: as it was, to be read again with the next news.
            self.known[known.id] = Known.restored(before)
            raise
        decided, known.outcomes = known.outcomes, {}
        if events or known.saved() != before:
            self._tell(events, [places.keep(known)])
            self._told_at[known.id] = time.monotonic()
        # Who waits for it answers the operator: after the events that it rests on.
        for turn, outcome in decided.items():
            self.decided[known.id, turn] = outcome
            if len(self.decided) > _DECIDED:
                del self.decided[next(iter(self.decided))]


def _readable(item: Frame) -> bool:
    return item.get("kind") != "unsupported_legacy_record"


def _now() -> int:
    return int(time.time() * 1000)
