"""The thread that keeps a connection: dials, receives, and comes back after every end."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from websockets.exceptions import ConnectionClosed, InvalidStatus

from .comeback import Comeback, Ended
from .connection import Hello, Link, NoWelcome, dial, greet, parse, usable
from .epochs import now_ms
from .journal import Journal
from .limits import CLOSE_REPLACED, LONGEST_DELAY_S

log = logging.getLogger("ctxhealth.client")
_STABLE_S = 5.0
_GRACE_S = 0.05
_LONGEST_BUSY_S = 60.0


class Desk(Protocol):
    """Where commands go."""

    def deliver(self, frame: dict[str, Any], arrived: float) -> None: ...
    def cancel(self, command: str) -> None: ...


@dataclass(frozen=True)
class Target:
    """Where to connect; without either part there is no connection and events wait."""

    url: str | None
    token: str | None

    @classmethod
    def given(cls, url: str | None, token: str | None) -> Target:
        """From arguments or CTXHEALTH_URL and CTXHEALTH_TOKEN; what is wrong is logged."""
        url = url or os.environ.get("CTXHEALTH_URL") or None
        token = token or os.environ.get("CTXHEALTH_TOKEN") or None
        if url is None or token is None:
            log.warning("no %s: events wait in the outbox", "url" if url is None else "token")
            return cls(url, token)
        try:
            return cls(url, usable(url, token))
        except ValueError as error:
            log.error("%s: events wait in the outbox", error)
            return cls(None, None)


class Uplink:
    """``link`` is the welcomed connection or None; ``state`` a word for people."""

    def __init__(
        self,
        journal: Journal,
        desk: Desk,
        hello: Callable[[], Hello],
        target: Target,
        on_replaced: str = "stop",
    ) -> None:
        self.link: Link | None = None
        self.state = "starting"
        self.last_error: str | None = None
        self.target = target
        self.connections = 0
        self._journal, self._desk, self._hello = journal, desk, hello
        self._stop_if_replaced = on_replaced == "stop"
        self._comeback = Comeback(journal)
        self._changed = threading.Condition()
        self._nudged = False
        self._stopping = False
        self._outdated = False
        self._halted = False

    # -- from other threads

    def nudge(self, target: Target | None = None) -> None:
        """Connect again now: a new address or token, or the host asks."""
        with self._changed:
            self.target = target or self.target
            self._halted = False
            self._nudged = True
            self._changed.notify_all()
        if self.link is not None:
            self.link.cut()

    def introduce_again(self) -> None:
        """What the agent can do changed: a new hello, within a second."""
        self._outdated = True

    def stop(self, why: str) -> None:
        """Say bye and end for good."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        link = self.link
        if link is not None:
            link.bye(why)
            link.cut()

    def wait(self, timeout: float) -> bool:
        """Until connected."""
        with self._changed:
            return self._changed.wait_for(lambda: self.link is not None, timeout)

    # -- the thread

    def run(self) -> None:
        while not self._journal.ready.wait(1.0):
            if self._stopping:
                return
        with self._changed:
            # Hosts register their handlers right after making a reporter: one hello says all.
            self._changed.wait_for(lambda: self._stopping, _GRACE_S)
        while not self._stopping:
            if self._halted or not (self.target.url and self.target.token):
                self._idle()
                continue
            ended = self._connection()
            if not self._stopping:
                self._rest(ended)
        self._to("closed")

    def _idle(self) -> None:
        self._to("replaced" if self._halted else "unconfigured")
        with self._changed:
            self._changed.wait_for(lambda: self._nudged or self._stopping)
            self._nudged = False

    def _rest(self, ended: Ended) -> None:
        if not self._nudged and self.last_error != ended.why:
            log.warning("no connection to %s: %s", self.target.url, ended.why)
        self.last_error = ended.why
        if ended.code == CLOSE_REPLACED and self._stop_if_replaced:
            self._halted = True
            return
        try:
            pause = self._comeback.pause(ended)
        except Exception as error:
            # A repair of the outbox that its disk refuses; it is tried after the next end.
            log.error("the outbox cannot be repaired: %s", error)
            pause = LONGEST_DELAY_S
        self._to("waiting")
        with self._changed:
            if self._changed.wait_for(lambda: self._nudged or self._stopping, pause):
                self._comeback.at_once()
            self._nudged = False

    def _connection(self) -> Ended:
        """Hold one connection until it ends. Never raises."""
        self._to("connecting")
        started = time.monotonic()
        link: Link | None = None
        try:
            link = self._join()
            self._receive(link)
            return _ended(link, started, None, "closed here")
        except ConnectionClosed as error:
            close = error.rcvd
            why = f"closed {close.code} {close.reason}".strip() if close else "connection lost"
            return _ended(link, started, close.code if close else None, why)
        except InvalidStatus as error:
            status = error.response.status_code
            return _ended(link, started, status, f"HTTP {status} instead of a websocket")
        except Exception as error:
            return _ended(link, started, None, f"{type(error).__name__}: {error}")
        finally:
            self._leave(link)

    def _join(self) -> Link:
        self._outdated = False
        hello, outbox = self._hello(), self._journal.outbox
        ws = dial(self.target.url or "", self.target.token or "", hello.sdk)
        try:
            epoch = outbox.epoch
            welcome = greet(ws, hello.frame(outbox))
            self._align(welcome)
            link = Link(ws, welcome, epoch)
            self._comeback.prepare(link)
        except BaseException:
            ws.close()
            raise
        self._welcomed(link, str(welcome.get("server") or ""))
        return link

    def _align(self, welcome: dict[str, Any]) -> None:
        """Bring the outbox to where the server stands."""
        outbox, acked = self._journal.outbox, int(welcome["acked"])
        incarnation = welcome.get("incarnation")
        if isinstance(incarnation, str) and incarnation != outbox.incarnation:
            outbox.remember(incarnation)
        if acked > outbox.sent_high:
            log.warning("the server holds %d events, of %d that left", acked, outbox.sent_high)
            self._journal.renumbered(lambda: outbox.skip_to(acked))
        elif acked < outbox.acked:
            log.warning("the server went back from %d to %d: sending again", outbox.acked, acked)
            outbox.rewind(acked, now_ms())
        elif acked > outbox.acked:
            self._journal.ack(acked)

    def _welcomed(self, link: Link, server: str) -> None:
        with self._changed:
            self.link = link
            self.connections += 1
            self.last_error = None
            self.state = "connected"
            self._changed.notify_all()
        log.info("connected to %s (%s)", self.target.url, server)
        self._journal.wake.set()

    def _leave(self, link: Link | None) -> None:
        with self._changed:
            self.link = None
        if link is not None:
            link.cut()
            link.ws.close()

    def _receive(self, link: Link) -> None:
        while not self._stopping:
            if self._outdated:
                self._nudged = True
                return
            try:
                raw = link.ws.recv(timeout=1.0)
            except TimeoutError:
                trouble = link.trouble(time.monotonic())
                if trouble:
                    raise NoWelcome(trouble) from None
                continue
            link.heard_at = time.monotonic()
            self._handle(link, parse(raw))

    # -- frames

    def _handle(self, link: Link, frame: dict[str, Any]) -> None:
        kind = frame.get("type")
        if kind == "ack" and frame.get("epoch") == link.epoch:
            self._acked(link, frame.get("upto"), frame.get("rejected") or ())
        elif kind == "hb":
            self._acked(link, frame.get("acked"), ())
        elif kind == "resend" and frame.get("epoch") == link.epoch:
            self._resend(link, frame.get("from"))
        elif kind == "busy":
            self._busy(link, frame.get("retry_ms"))
        elif kind == "command":
            self._desk.deliver(frame, time.monotonic())
        elif kind == "cancel":
            self._desk.cancel(str(frame.get("id")))
        # Anything else is a newer server's or rubbish: not ours to judge.

    def _acked(self, link: Link, upto: Any, rejected: Any) -> None:
        # More than was ever sent is not an ack of ours.
        if not isinstance(upto, int) or upto > self._journal.outbox.sent_high:
            return
        for entry in rejected:
            log.warning("the server will not have an event: %s", entry)
        with link.lock:
            moved = link.window.ack(upto, time.monotonic())
        if moved or rejected:
            link.progressed = True
            self._journal.ack(upto, rejected)
            self._comeback.passed(link, upto)
            self._journal.wake.set()

    def _resend(self, link: Link, start: Any) -> None:
        outbox = self._journal.outbox
        if not isinstance(start, int) or not 1 <= start <= outbox.next_seq:
            return
        with link.lock:
            link.window.resend(start)
        if start - 1 < outbox.acked:
            outbox.rewind(start - 1, now_ms())
        self._journal.wake.set()

    def _busy(self, link: Link, retry_ms: Any) -> None:
        known = isinstance(retry_ms, int) and retry_ms > 0
        pause = min(_LONGEST_BUSY_S, retry_ms / 1000) if known else 1.0
        with link.lock:
            link.window.busy(time.monotonic() + pause)
        self._journal.wake.set()

    def _to(self, state: str) -> None:
        with self._changed:
            self.state = state
            self._changed.notify_all()


def _ended(link: Link | None, started: float, code: int | None, why: str) -> Ended:
    if link is None:
        return Ended(code, why)
    stable = link.progressed or time.monotonic() - started > _STABLE_S
    return Ended(code, why, stable=stable, in_flight=link.window.sent > link.window.acked)
