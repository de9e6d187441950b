"""The thread that keeps a connection: dials, receives, and comes back after every end."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from websockets.exceptions import ConnectionClosed, InvalidStatus

from . import limits
from .connection import Hello, Link, NoWelcome, dial, greet, parse
from .epochs import new_epoch, now_ms
from .journal import Journal
from .limits import delay_s

log = logging.getLogger("ctxhealth.client")
_STABLE_S = 5.0
_GRACE_S = 0.05
_FOR_A_PERSON = (limits.CLOSE_TOKEN, limits.CLOSE_SCOPE, limits.CLOSE_VERSION)
_CROWDED = (limits.CLOSE_OVERLOAD, limits.CLOSE_RATE)
_SOON = (408, 425, 429)
_POISON = (limits.CLOSE_BAD_FRAME, limits.CLOSE_TOO_BIG)


class Desk(Protocol):
    """Where commands go."""

    def deliver(self, frame: dict[str, Any], arrived: float) -> None: ...
    def cancel(self, command: str) -> None: ...


@dataclass(frozen=True)
class Target:
    url: str | None
    token: str | None


@dataclass(frozen=True)
class Ended:
    """How one connection ended. ``code``: the close code, or the HTTP status of a refusal."""

    code: int | None
    why: str
    welcomed: bool = False
    stable: bool = False
    in_flight: bool = False


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
        self._on_replaced = on_replaced
        self._changed = threading.Condition()
        self._nudged = False
        self._stopping = False
        self._outdated = False
        self._halted = False
        self._attempt = 0
        self._cannot_resume = 0
        self._narrow: int | None = None
        self._uniform = random.Random().uniform

    # -- from other threads

    def nudge(self, target: Target | None = None) -> None:
        """Connect again now: new address or token, new capabilities, or the host asks."""
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
        self._journal.ready.wait()
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
        pause = self._after(ended)
        self._to("waiting")
        with self._changed:
            self._changed.wait_for(lambda: self._nudged or self._stopping or self._halted, pause)
            if self._nudged:
                self._attempt = 0
            self._nudged = False

    def _connection(self) -> Ended:
        """Hold one connection until it ends. Never raises."""
        self._to("connecting")
        started = time.monotonic()
        link: Link | None = None
        try:
            link = self._join()
            self._receive(link)
            return self._ended(link, started, None, "closed here")
        except ConnectionClosed as error:
            close = error.rcvd
            why = f"closed {close.code} {close.reason}".strip() if close else "connection lost"
            return self._ended(link, started, close.code if close else None, why)
        except InvalidStatus as error:
            status = error.response.status_code
            return self._ended(link, started, status, f"HTTP {status} instead of a websocket")
        except Exception as error:
            return self._ended(link, started, None, f"{type(error).__name__}: {error}")
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
            if self._narrow is not None:
                self._set_pace(link, batch=1, inflight=1)
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
        if acked >= outbox.next_seq:
            self._journal.renumbered(lambda: outbox.skip_to(acked))
        elif acked < outbox.acked:
            log.warning("the server went back from %d to %d: sending again", outbox.acked, acked)
            outbox.rewind(acked)
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
                    link.cut()
                    raise NoWelcome(trouble) from None
                continue
            link.heard_at = time.monotonic()
            self._handle(link, parse(raw))

    def _handle(self, link: Link, frame: dict[str, Any]) -> None:
        kind = frame.get("type")
        if kind == "ack" and frame.get("epoch") == link.epoch:
            self._acked(link, frame)
        elif kind == "hb":
            self._acked(link, {"upto": frame.get("acked")})
        elif kind == "resend" and frame.get("epoch") == link.epoch:
            self._resend(link, frame.get("from"))
        elif kind == "busy":
            self._busy(link, frame)
        elif kind == "command":
            self._desk.deliver(frame, time.monotonic())
        elif kind == "cancel":
            self._desk.cancel(str(frame.get("id")))
        # Anything else is a newer server's or rubbish: not ours to judge.

    def _acked(self, link: Link, frame: dict[str, Any]) -> None:
        upto, rejected = frame.get("upto"), frame.get("rejected") or ()
        if not isinstance(upto, int) or upto >= self._journal.outbox.next_seq:
            return
        for entry in rejected:
            log.warning("the server will not have an event: %s", entry)
        with link.lock:
            moved = link.window.ack(upto, time.monotonic())
        if moved or rejected:
            link.progressed = True
            self._journal.ack(upto, rejected)
            self._widen(link, upto)
            self._journal.wake.set()

    def _resend(self, link: Link, start: Any) -> None:
        outbox = self._journal.outbox
        if not isinstance(start, int) or not 1 <= start <= outbox.next_seq:
            return
        with link.lock:
            link.window.resend(start)
        if start - 1 < outbox.acked:
            outbox.rewind(start - 1)
        self._journal.wake.set()

    def _busy(self, link: Link, frame: dict[str, Any]) -> None:
        retry_ms = frame.get("retry_ms")
        pause = min(60.0, retry_ms / 1000) if isinstance(retry_ms, int) and retry_ms > 0 else 1.0
        with link.lock:
            link.window.busy(time.monotonic() + pause)
        self._journal.wake.set()

    # -- after the end

    def _ended(self, link: Link | None, started: float, code: int | None, why: str) -> Ended:
        if link is None:
            return Ended(code, why)
        stable = link.progressed or time.monotonic() - started > _STABLE_S
        in_flight = link.window.sent > link.window.acked
        return Ended(code, why, welcomed=True, stable=stable, in_flight=in_flight)

    def _after(self, ended: Ended) -> float:
        """Seconds to wait, and whatever else this end asks for."""
        if self.last_error != ended.why:
            log.warning("no connection to %s: %s", self.target.url, ended.why)
        self.last_error = ended.why
        self._attempt = 0 if ended.stable else self._attempt + 1
        self._cannot_resume += ended.code == limits.CLOSE_CANNOT_RESUME
        if ended.code == limits.CLOSE_REPLACED and self._on_replaced == "stop":
            self._halted = True
        elif ended.code in _FOR_A_PERSON or _refused(ended.code):
            return self._uniform(*limits.REFUSED_DELAY_S)
        elif ended.code in _POISON and ended.in_flight:
            self._isolate(ended)
        elif ended.code == limits.CLOSE_CANNOT_RESUME and self._cannot_resume >= 2:
            self._start_over(ended)
        return delay_s(max(self._attempt, 2 * (ended.code in _CROWDED)), self._uniform)

    def _start_over(self, ended: Ended) -> None:
        outbox = self._journal.outbox
        why = f"a new stream, as the server could not resume {outbox.epoch}: {ended.why}"
        self._journal.renumbered(lambda: outbox.restart(new_epoch(), now_ms(), why))
        self._cannot_resume = 0

    def _isolate(self, ended: Ended) -> None:
        """An event the server cannot even reject: first send singly, then leave it out."""
        outbox = self._journal.outbox
        if self._narrow == outbox.acked:
            log.error("event %d is left out: %s", outbox.acked + 1, ended.why)
            outbox.replace(outbox.acked + 1, now_ms(), f"refused by the server: {ended.why}")
        self._narrow = outbox.acked

    def _widen(self, link: Link, acked: int) -> None:
        if self._narrow is not None and acked > self._narrow + limits.BATCH_EVENTS:
            self._narrow = None
            self._set_pace(link, batch=link.limits.batch, inflight=link.limits.inflight)

    def _set_pace(self, link: Link, *, batch: int, inflight: int) -> None:
        with link.lock:
            link.window.limits = replace(link.limits, batch=batch, inflight=inflight)

    def _to(self, state: str) -> None:
        with self._changed:
            self.state = state
            self._changed.notify_all()


def _refused(status: int | None) -> bool:
    """An HTTP status that waiting does not heal."""
    return status is not None and 400 <= status < 500 and status not in _SOON
