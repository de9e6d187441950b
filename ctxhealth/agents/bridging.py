"""What every bridge shares: its options, its line to the server, and its words at the terminal.

A bridge is an agent of its own on the pages. Its name lives and dies with its outbox, so that a
session reported again after the state was lost is another agent's chat, never twice in one.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import sqlite3
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit

from ctxhealth.client import Reporter
from ctxhealth.client.connection import websocket_url
from ctxhealth.client.database import Database, InUse, set_meta
from ctxhealth.client.filing import Filing
from ctxhealth.client.outbox import Statement

WRONG_INPUT = 2
REFUSED = 3
#: What reading an answer of an unexpected shape may raise.
UNREADABLE = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
DEFAULT_URL = "http://127.0.0.1:8000"
_OPEN_S = 15.0
# No letter or digit that is taken for another.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_REFUSALS = {
    "401": "The server does not know this token (or it was revoked or has expired). "
    "`manage.py issue_token NAME` makes a new one.",
    "403": "The server does not let this token report as this agent: {why}.",
    "4406": "The server speaks another version of the protocol: {why}.",
    "4408": "Another process reports as this agent now: end it, or use another --agent.",
}
_REFUSALS["4401"], _REFUSALS["4403"] = _REFUSALS["401"], _REFUSALS["403"]


class CannotBridge(Exception):
    """``str`` is a sentence for the person at the terminal, ``code`` the exit code."""

    def __init__(self, sentence: str, code: int = WRONG_INPUT) -> None:
        super().__init__(sentence)
        self.code = code


class Words:
    """Troubles go to ``err``, the rest to ``out``; ``quiet`` leaves out the rest."""

    def __init__(
        self, *, quiet: bool = False, out: TextIO | None = None, err: TextIO | None = None
    ) -> None:
        self._quiet = quiet
        self._out, self._err = out or sys.stdout, err or sys.stderr
        self._troubles: set[str] = set()

    def say(self, text: str) -> None:
        if not self._quiet:
            print(text, file=self._out, flush=True)

    def warn(self, text: str) -> None:
        print(text, file=self._err, flush=True)

    def once(self, about: str, trouble: str) -> None:
        """Say a trouble when it begins, not on every round."""
        if about not in self._troubles:
            self.warn(trouble)
        self._troubles.add(about)

    def heal(self, about: str, text: str) -> None:
        """The trouble is over."""
        if about in self._troubles:
            self._troubles.discard(about)
            self.warn(text)


def server_arguments(parser: ArgumentParser, named: str) -> None:
    """The server, the token, the name, the state: alike for every command that reports."""
    parser.add_argument(
        "--url", default=os.environ.get("CTXHEALTH_URL") or DEFAULT_URL,
        help=f"the ctxhealth server; CTXHEALTH_URL or {DEFAULT_URL} if not given",
    )  # fmt: skip
    parser.add_argument("--token", help="an agent token; better in CTXHEALTH_TOKEN or a file")
    parser.add_argument("--token-file", type=Path, help="a file that holds the agent token")
    parser.add_argument("--agent", help=f"the agent's name on the pages; if not given {named}")
    parser.add_argument(
        "--text", choices=["excerpt", "none"], default="excerpt",
        help="how much of the text leaves this machine: 400 redacted characters, or none",
    )  # fmt: skip
    parser.add_argument(
        "--state", type=Path, help="the folder that remembers what was sent already"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="say only what went wrong")


def common_arguments(parser: ArgumentParser, product: str) -> None:
    """Those of a bridge."""
    server_arguments(parser, f"`{product} on <host> (k7f2)`")
    parser.add_argument(
        "--read-only", action="store_true", help="report only; take no commands of operators"
    )


def carry_out(bridge: Callable[[Namespace, Words], int], options: Namespace) -> int:
    """Run ``bridge`` until it ends or is interrupted; what stops it becomes one sentence."""
    words = Words(quiet=options.quiet)
    try:
        return bridge(options, words)
    except CannotBridge as error:
        words.warn(str(error))
        return error.code


class Line:
    """The reporter of one bridge, with its outbox and the bridge's own tables in one file."""

    def __init__(
        self,
        options: Namespace,
        words: Words,
        *,
        product: str,
        source: str,
        commands: Sequence[str] = (),
        **about: Any,
    ) -> None:
        """``source`` names what is followed, ``commands`` what can be carried out there.

        ``about``: runtime_version. Raises CannotBridge.
        """
        self.url, token = server_of(options)
        self._words = words
        outbox = _outbox(options, product, source)
        caps = {
            "commands": [] if options.read_only else list(commands),
            "fallback": "none", "read_only": bool(options.read_only or not commands),
        }  # fmt: skip
        self.reporter = Reporter(
            self.url, token, agent=_name(options, product, outbox), runtime=product, outbox=outbox,
            text=options.text, capabilities=caps, **about,
        )  # fmt: skip
        self._filing = Filing(self.reporter)
        self._open(outbox)
        self.rows = self._filing.rows

    def tell(self, events: Iterable[Mapping[str, Any]], also: Iterable[Statement] = ()) -> None:
        """Keep ``events`` and the bridge's own place together. Raises CannotBridge."""
        try:
            self._filing.tell(events, list(also))
        except sqlite3.Error as error:
            raise CannotBridge(f"The state folder cannot be written: {error}.") from error

    def check(self) -> None:
        """Say whether the server is there; raises CannotBridge where it refuses for good."""
        if self.reporter.connected:
            self._words.heal("server", f"Connected to {self.url}.")
            return
        error = str(self.reporter.status()["last_error"] or "")
        said = refusal(error)
        if said is not None:
            raise CannotBridge(said, REFUSED)
        if error:
            self._words.once("server", f"No connection to {self.url} ({error}): waiting for it.")

    def close(self) -> None:
        if self.reporter.connected:
            self.reporter.flush(2.0)
        left = int(self.reporter.status()["unacked"])
        self.reporter.close(0)
        if left:
            self._words.warn(f"Not sent yet, kept for the next time: {left:,} events.")

    def _open(self, outbox: Path) -> None:
        trouble = None
        if not self._filing.ready(_OPEN_S):
            trouble = self.reporter.status()["outbox_error"] or "it takes too long"
        elif not self._filing.in_file:
            self.reporter.close(0)
            raise _in_use(outbox)
        if trouble is not None:
            self.reporter.close(0)
            raise CannotBridge(f"The state folder {outbox.parent} cannot be used: {trouble}.")


def refusal(error: str) -> str | None:
    """What the server refuses for good, as a sentence; None for what may pass."""
    found = re.search(r"^(?:closed|HTTP) ([0-9]{3,4})\s*(.*)", error)
    said = _REFUSALS.get(found.group(1)) if found else None
    if found is None or said is None:
        return None
    return said.format(why=found.group(2).rstrip(".") or "no reason given")


def server_of(options: Namespace) -> tuple[str, str]:
    """The server's address and the token for it. Raises CannotBridge."""
    url = str(options.url).rstrip("/")
    try:
        websocket_url(url)
        _ = urlsplit(url).port  # raises where it is none
    except ValueError as error:
        raise CannotBridge(f"--url: {error}.") from error
    token = secret_of(options.token, options.token_file, "--token-file")
    token = token or _plain(os.environ.get("CTXHEALTH_TOKEN"), "CTXHEALTH_TOKEN")
    if not token:
        raise CannotBridge(
            "No token: set CTXHEALTH_TOKEN or give --token-file. "
            "`manage.py issue_token NAME` makes one."
        )
    return url, token


def secret_of(given: str | None, file: Path | None, option: str) -> str | None:
    """A secret given itself or in ``file``, the argument ``option``. Raises CannotBridge."""
    if file is None:
        return _plain(given, option.removesuffix("-file"))
    try:
        return _plain(file.read_text("utf-8"), option)
    except (OSError, UnicodeDecodeError) as error:
        raise CannotBridge(f"{option}: {error}.") from error


def _plain(secret: str | None, option: str) -> str | None:
    """It goes into a header, which takes one line of plain characters."""
    secret = (secret or "").strip()
    if not all("!" <= letter <= "~" for letter in secret):
        raise CannotBridge(f"{option}: holds more than one word of plain characters, so no secret.")
    return secret or None


def _outbox(options: Namespace, product: str, source: str) -> Path:
    if options.state is not None:
        return Path(options.state) / "outbox.sqlite3"
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    whose = "\n".join((str(options.url).rstrip("/"), options.agent or "", source))
    digest = blake2b(whose.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    return Path(home) / "ctxhealth" / f"bridge-{product}-{digest}" / "outbox.sqlite3"


def _name(options: Namespace, product: str, outbox: Path) -> str:
    """The name that the outbox was begun with, or the one given; a new outbox mints one."""
    if options.agent:
        return str(options.agent)
    try:
        db = Database(str(outbox))
        try:
            kept = db.meta("agent")
            if kept is None:
                host = re.sub(r"[^A-Za-z0-9._-]", "", socket.gethostname().partition(".")[0])[:40]
                mark = "".join(secrets.choice(_LETTERS) for _ in range(4))
                kept = f"{product} on {host or 'this machine'} ({mark})"
                with db.transaction(durable=True) as begun:
                    set_meta(begun, agent=kept)
            return kept
        finally:
            db.close()
    except InUse as error:
        raise _in_use(outbox) from error
    except (OSError, sqlite3.Error) as error:
        raise CannotBridge(f"The state folder {outbox.parent} cannot be used: {error}.") from error


def _in_use(outbox: Path) -> CannotBridge:
    return CannotBridge(
        f"Another bridge runs with {outbox.parent}: end it, or give this one another --agent."
    )
