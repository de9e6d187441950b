"""What the host pushed, as notes of what to look at; written by the reading threads."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from ctxhealth.agents.maka.frames import Frame
from ctxhealth.agents.maka.link import Link


@dataclass
class Subscription:
    """``through``: the newest transcript message that the host announced. ``heard``: the model
    or a tool is writing, as far as frames tell that are not read."""

    session: str
    link: Link
    name: str
    next: int
    through: int | None
    root: Frame | None = None
    heard: bool = False


@dataclass
class News:
    """``dirty``: sessions to look at; ``catalog``: sessions whose entry changed."""

    dirty: set[str] = field(default_factory=set)
    usage: set[str] = field(default_factory=set)
    catalog: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)


class Inbox:
    """Frames are invalidations: only the newest of each kind counts, so it cannot overflow."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._subscriptions: dict[tuple[int, str], Subscription] = {}
        self._news = News()

    def __call__(self, link: Link, frame: Frame) -> None:
        """One frame; from the link's thread, and back at once."""
        with self.changed:
            if frame.get("kind") == "ended":
                self._drop(link)
            elif frame.get("kind") == "session.catalog.changed":
                self._news.catalog.add(str(frame.get("sessionId")))
            elif not self._subscribed(link, frame):
                return
            self.changed.notify_all()

    def add(self, subscription: Subscription) -> None:
        with self.changed:
            self._subscriptions[id(subscription.link), subscription.name] = subscription
            self._news.dirty.add(subscription.session)

    def of(self, session: str) -> Subscription | None:
        with self.changed:
            return next(
                (each for each in self._subscriptions.values() if each.session == session), None
            )

    def followed(self) -> dict[str, Subscription]:
        with self.changed:
            return {each.session: each for each in self._subscriptions.values()}

    def forget(self, session: str) -> Subscription | None:
        with self.changed:
            for key, each in self._subscriptions.items():
                if each.session == session:
                    return self._subscriptions.pop(key)
        return None

    def take(self, timeout: float) -> News:
        """What there is to look at, waited for."""
        with self.changed:
            if not self._any():
                self.changed.wait(timeout)
            news, self._news = self._news, News()
            return news

    def again(self, session: str) -> None:
        """Look at it once more."""
        with self.changed:
            self._news.dirty.add(session)

    def _any(self) -> bool:
        news = self._news
        return bool(news.dirty or news.catalog or news.removed)

    def _drop(self, link: Link) -> None:
        self._subscriptions = {
            key: each for key, each in self._subscriptions.items() if each.link is not link
        }

    def _subscribed(self, link: Link, frame: Frame) -> bool:
        """Whether a frame of a subscription is news."""
        key = (id(link), str(frame.get("subscriptionId")))
        found = self._subscriptions.get(key)
        if found is None:
            return False
        if frame.get("sequence") != found.next:
            # A hole: what was missed is pulled after a new subscription.
            del self._subscriptions[key]
            return True
        found.next += 1
        return self._one(key, found, str(frame.get("kind")), frame)

    def _one(self, key: tuple[int, str], found: Subscription, kind: str, frame: Frame) -> bool:
        session = found.session
        if kind == "subscription.closed":
            del self._subscriptions[key]
            if frame.get("reason") == "session_removed":
                self._news.removed.add(session)
        elif kind == "subscription.transcript_advanced":
            found.through = _later(found.through, frame.get("throughSequence"))
            self._news.dirty.add(session)
        elif kind == "subscription.session_projection":
            found.root = (frame.get("snapshot") or {}).get("rootTurn")
            self._news.dirty.add(session)
        elif kind == "subscription.session_domain_changed" and frame.get("domain") == "usage":
            self._news.dirty.add(session)
            self._news.usage.add(session)
        else:
            # Text as it is written, output of tools: none of ours but for the sign of life.
            found.heard = True
            return False
        return True


def _later(known: int | None, told: Any) -> int | None:
    if not isinstance(told, int):
        return known
    return told if known is None else max(known, told)
