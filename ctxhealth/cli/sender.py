"""From readers to the server: the reporter, its outbox in a file, and waiting where it is full."""

from __future__ import annotations

import os
import re
import sqlite3
from argparse import Namespace
from collections.abc import Sequence

from ctxhealth.cli.console import Console
from ctxhealth.cli.errors import REFUSED, CannotSend
from ctxhealth.cli.identity import Identity, in_use, state_home, unusable
from ctxhealth.cli.pages import Pages
from ctxhealth.cli.places import Place, Places
from ctxhealth.client import Reporter
from ctxhealth.client.connection import websocket_url
from ctxhealth.client.filing import Filing
from ctxhealth.readers.base import Event

# Events on their way; more wait in their file.
_UNDER_WAY = 8_000
_OPEN_S = 15.0
_REFUSALS = {
    4401: "The server does not know this token (or it was revoked or has expired). "
    "`manage.py issue_token NAME` makes a new one.",
    401: "The server does not know this token. `manage.py issue_token NAME` makes a new one.",
    4403: "This token may not report as this agent: {why}.",
    403: "The server refuses this connection: {why}.",
    4406: "The server speaks another version of the protocol: {why}.",
    4408: "Another process reports as this agent now: end it, or use another --agent.",
}


class Sender:
    """Blocks instead of dropping: a file waits, an agent would not."""

    def __init__(self, options: Namespace, identity: Identity, console: Console) -> None:
        self.url, token = server_of(options)
        self._console = console
        self.reporter = Reporter(
            self.url, token, agent=identity.agent, runtime=options.product, outbox=identity.outbox,
            text=options.text, capabilities={"read_only": True, "commands": [], "fallback": "none"},
        )  # fmt: skip
        self.pages = Pages(
            self.url, token, identity.agent, state_home(options) / "tokens-that-may-not-read"
        )
        self._filing = Filing(self.reporter)
        self._open(identity)
        self.places = Places(self._filing)
        if options.again:
            self._filing.file((), [Places.forget()])

    def send(self, events: Sequence[Event], places: Sequence[Place]) -> None:
        """Keep ``events`` and ``places`` together, once there is room on the way."""
        while not self.reporter.wait_below(_UNDER_WAY, 0.5):
            self._complain()
        self._heard()
        try:
            self._filing.file(events, [Places.keep(place) for place in places])
        except sqlite3.Error as error:
            raise CannotSend(f"The state folder cannot be written: {error}.") from error

    def drain(self) -> None:
        """Wait until the server has everything."""
        while not self.reporter.flush(0.5):
            self._complain()
        self._heard()

    def check(self) -> None:
        """Say whether the server is there; raises CannotSend where it refuses for good."""
        if self.reporter.connected:
            self._heard()
        else:
            self._complain()

    def close(self) -> int:
        """How many events wait for the next time."""
        if self.reporter.connected:
            self.reporter.flush(2.0)
        waiting = int(self.reporter.status()["unacked"])
        self.reporter.close(0)
        return waiting

    def _open(self, identity: Identity) -> None:
        if not self._filing.ready(_OPEN_S):
            trouble = self.reporter.status()["outbox_error"] or "it takes too long"
            self.reporter.close(0)
            raise unusable(identity.outbox, trouble)
        if not self._filing.in_file:
            self.reporter.close(0)
            raise in_use(identity.outbox)

    def _complain(self) -> None:
        error = self.reporter.status()["last_error"] or ""
        said = refusal(error)
        if said is not None:
            raise CannotSend(said, REFUSED)
        if self.reporter.connected or not error:
            return
        self._console.once(f"No connection to {self.url} ({_plain(error)}): waiting for it.")

    def _heard(self) -> None:
        if self.reporter.connected:
            self._console.heal(f"Connected to {self.url}.")


def refusal(error: str) -> str | None:
    """What the server refuses for good, as a sentence; None for what may pass."""
    found = re.search(r"^(?:closed|HTTP) ([0-9]{3,4})\s*(.*)", error)
    said = _REFUSALS.get(int(found.group(1))) if found else None
    if found is None or said is None:
        return None
    why = found.group(2).rstrip(".") or "no reason given"
    name = " Give --agent with the name that it belongs to." if "another agent" in why else ""
    return said.format(why=why) + name


def _plain(error: str) -> str:
    name, _, rest = error.partition(": ")
    return rest if name.endswith(("Error", "Refused")) and rest else error


def server_of(options: Namespace) -> tuple[str, str]:
    """The server's address and the token for it. Raises CannotSend."""
    token, url = token_of(options), str(options.url).rstrip("/")
    try:
        websocket_url(url)
    except ValueError as error:
        raise CannotSend(f"--url: {error}.") from error
    return url, token


def token_of(options: Namespace) -> str:
    """The agent token of the arguments or the environment; CannotSend without one."""
    given: str | None = options.token or None
    if options.token_file is not None:
        try:
            given = options.token_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CannotSend(f"--token-file: {error}.") from error
    token = given or os.environ.get("CTXHEALTH_TOKEN")
    if not token:
        raise CannotSend(
            "No token: set CTXHEALTH_TOKEN or give --token-file. "
            "`manage.py issue_token NAME` makes one."
        )
    return token
