"""After a connection ended: how long to wait, and what has to change before the next one."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, replace

from . import limits
from .connection import Link
from .epochs import new_epoch, now_ms
from .journal import Journal
from .limits import Uniform, delay_s

log = logging.getLogger("ctxhealth.client")
_FOR_A_PERSON = (limits.CLOSE_TOKEN, limits.CLOSE_SCOPE, limits.CLOSE_VERSION)
_CROWDED = (limits.CLOSE_OVERLOAD, limits.CLOSE_RATE)
_POISON = (limits.CLOSE_BAD_FRAME, limits.CLOSE_TOO_BIG, limits.CLOSE_FRAME_SIZE)
_SOON = (408, 425, 429)


@dataclass(frozen=True)
class Ended:
    """How one connection ended. ``code``: the close code, or the HTTP status of a refusal."""

    code: int | None
    why: str
    stable: bool = False
    in_flight: bool = False


class Comeback:
    """Remembers the ends of earlier connections; one per uplink, used by its thread alone."""

    def __init__(self, journal: Journal, uniform: Uniform | None = None) -> None:
        self._journal = journal
        self._uniform = uniform or random.Random().uniform
        self._attempt = 0
        self._cannot_resume = 0
        self._narrow: int | None = None

    def at_once(self) -> None:
        """Somebody asked for a connection now: forget how often it failed."""
        self._attempt = 0

    def pause(self, ended: Ended) -> float:
        """Seconds to wait before the next try; repairs the outbox where the end asks for it."""
        self._attempt = 0 if ended.stable else self._attempt + 1
        if ended.code in _FOR_A_PERSON or _refused(ended.code):
            return self._uniform(*limits.REFUSED_DELAY_S)
        if ended.code in _POISON and ended.in_flight:
            self._isolate(ended)
        if ended.code == limits.CLOSE_CANNOT_RESUME:
            self._cannot_resume += 1
            if self._cannot_resume >= 2:
                self._start_over(ended)
        least = 2 if ended.code in _CROWDED else 0
        return delay_s(max(self._attempt, least), self._uniform)

    def prepare(self, link: Link) -> None:
        """One event at a time where the last connections ended over one that cannot be named."""
        if self._narrow is not None:
            _pace(link, batch=1, inflight=1)

    def passed(self, link: Link, acked: int) -> None:
        """Acks came: back to full pace once the suspect events are well behind."""
        self._cannot_resume = 0
        if self._narrow is not None and acked > self._narrow + limits.BATCH_EVENTS:
            self._narrow = None
            _pace(link, batch=link.limits.batch, inflight=link.limits.inflight)

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


def _pace(link: Link, *, batch: int, inflight: int) -> None:
    with link.lock:
        link.window.limits = replace(link.limits, batch=batch, inflight=inflight)


def _refused(status: int | None) -> bool:
    """An HTTP status that waiting does not heal."""
    return status is not None and 400 <= status < 500 and status not in _SOON
