"""Keeps the bridge going: connects, follows, comes back with patience, detaches where it should."""

from __future__ import annotations

import random
import threading
import time
from argparse import Namespace
from collections.abc import Callable

from ctxhealth.agents.bridging import REFUSED, UNREADABLE, CannotBridge, Line, Words
from ctxhealth.agents.maka import places
from ctxhealth.agents.maka.follower import DAY_MS, Follower
from ctxhealth.agents.maka.frames import HostSaid
from ctxhealth.agents.maka.host import READ_ONLY, TESTED, Epoch
from ctxhealth.agents.maka.inbox import Inbox
from ctxhealth.agents.maka.known import Known
from ctxhealth.agents.maka.link import Incompatible, Link
from ctxhealth.agents.maka.orders import KINDS, Orders
from ctxhealth.agents.maka.registration import Place, find
from ctxhealth.agents.maka.sockets import Ended, Unauthorized, Unreachable
from ctxhealth.client.limits import delay_s

LOCAL = "local"
_ROUND_S = 0.25
_ALONE_S = 5.0
# An ephemeral host ends 30 s after its last client: then it is gone, and not kept by us.
_APART_S = 60.0
# Events on their way; more wait in the host's own records.
_UNDER_WAY = 8_000


class Bridge:
    """One runtime host, one server. ``run`` returns where ``stop`` is set; else it goes on."""

    def __init__(self, options: Namespace, words: Words, credential: str | None) -> None:
        self._options, self._words, self._credential = options, words, credential
        self._stop = threading.Event()
        self._epoch = _epoch(options)
        # Deterministic names are no help: two bridges of one machine must differ.
        self._name = f"ctxhealth-{random.randrange(2**48):x}"
        self.follower: Follower | None = None
        kinds = () if options.read_only else KINDS
        self.line = Line(
            options, words, product="maka", source=str(options.host), commands=kinds
        )  # fmt: skip
        try:
            self.line.tell((), [places.TABLE])
            self._known = self._restored()
        except BaseException:
            self.line.close()
            raise
        if kinds:
            Orders(lambda: self.follower).register(self.line.reporter)

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> None:
        """Follow until stopped. Raises CannotBridge where going on makes no sense."""
        attempt = 0
        self._words.say(f"Agent: {self.line.reporter.agent}. {self.line.url}/")
        try:
            while not self._stop.is_set():
                begun = time.monotonic()
                wait = self._follow()
                attempt = 0 if time.monotonic() - begun > 10 else attempt + 1
                self._stop.wait(wait if wait is not None else delay_s(attempt, random.uniform))
        finally:
            self._detach()
            self.line.close()

    def _follow(self) -> float | None:
        """One stay at the host; how long to keep away, None for the usual patience."""
        place = self._place()
        if place is None:
            self._words.once("host", "No runtime host of Maka is running here: waiting for one.")
            return None
        try:
            return self._stay(place)
        except Unauthorized as error:
            raise CannotBridge(str(error), REFUSED) from error
        except Incompatible as error:
            raise CannotBridge(_unsupported(error.epoch), REFUSED) from error
        except HostSaid as error:
            return self._said(error)
        except (Unreachable, Ended) as error:
            self._words.once(
                "host", f"No connection to {place.address} ({error}): waiting for it."
            )  # fmt: skip
            return None
        except UNREADABLE as error:
            self._words.once(
                "host", f"The runtime host answers what this bridge cannot read "
                f"({type(error).__name__}: {error}): trying again.",
            )  # fmt: skip
            return None
        finally:
            self._detach()

    def _stay(self, place: Place) -> float:
        inbox = Inbox()
        since = self._since()
        dial = self._dialler(place, inbox)
        follower = Follower(dial, inbox, self._epoch, self._known, self._tell, since=since)
        # Known before it starts, so that what it opened is closed whatever happens.
        self.follower = follower
        follower.start()
        self._words.heal("host", f"Connected to {place.address}.")
        looked = time.monotonic()
        while not self._stop.is_set():
            if self.line.reporter.wait_below(_UNDER_WAY, _ROUND_S):
                follower.round(_ROUND_S)
            self.line.check()
            for trouble in sorted(follower.troubles):
                self._words.once(trouble, f"Maka does not tell of a session: {trouble}.")
            if place.ephemeral and time.monotonic() > looked + _ALONE_S:
                looked = time.monotonic()
                if self._is_alone(follower):
                    self._words.say("Only the bridge is left at the runtime host: it lets go.")
                    return _APART_S
        return 0.0

    def _dialler(self, place: Place, inbox: Inbox) -> Callable[[], Link]:
        def dial() -> Link:
            return Link(place.address, self._credential, self._name, self._epoch.number, inbox)

        return dial

    def _is_alone(self, follower: Follower) -> bool:
        status = follower.links[0].ask("host.status")
        return int(status.get("connections") or 0) <= len(follower.links)

    def _detach(self) -> None:
        follower, self.follower = self.follower, None
        if follower is not None:
            follower.stop()

    def _place(self) -> Place | None:
        if self._options.host == LOCAL:
            return find()
        address = str(self._options.host)
        return Place(address, address.startswith("unix:"))

    def _said(self, error: HostSaid) -> float | None:
        if error.code == "unauthorized":
            raise CannotBridge(
                f"The credential lacks a grant: {error.message}. docs/agents/maka.md has the "
                "command that issues one with all that are needed.", REFUSED,
            ) from error  # fmt: skip
        self._words.once("host", f"The runtime host is not ready ({error.message}): waiting.")
        return None

    def _tell(self, events: list[dict[str, object]], also: list[places.Statement]) -> None:
        self.line.tell(events, also)

    def _restored(self) -> dict[str, Known]:
        try:
            return places.load(self.line.rows)
        except (ValueError, TypeError, KeyError) as error:
            raise CannotBridge(
                f"What was reported before was kept by another version of this program ({error}): "
                "give another --state, and the sessions are reported anew."
            ) from error

    def _since(self) -> int:
        days = self._options.since_days
        return 0 if days is None else int(time.time() * 1000 - days * DAY_MS)


def _epoch(options: Namespace) -> Epoch:
    number = options.untested_epoch
    if number is None:
        return TESTED[max(TESTED)]
    if number in TESTED or number in READ_ONLY:
        return TESTED.get(number) or READ_ONLY[number]
    raise CannotBridge(f"--untested-epoch: nothing is known of epoch {number}.")


def _unsupported(epoch: int) -> str:
    tested = ", ".join(str(number) for number in sorted(TESTED))
    said = f"unsupported host epoch {epoch}: this bridge was tested with {tested}"
    if epoch in READ_ONLY:
        said += f"; --untested-epoch {epoch} takes the risk, as its source was read"
    return f"{said}."
