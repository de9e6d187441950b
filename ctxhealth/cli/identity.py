"""As which agent files are sent, and where its stream is kept.

A chat belongs to one agent and its events to one stream. Whoever sends without a name given gets
one of their own, which lives and dies with the outbox: sent from elsewhere, or once the state is
lost, the same session is another agent's chat and never the same events once more in the first.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import sqlite3
from argparse import Namespace
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from ctxhealth.cli.errors import CannotSend
from ctxhealth.cli.places import Places
from ctxhealth.client.database import Database, InUse, set_meta
from ctxhealth.readers.registry import HEAD_BYTES, sniff

# No letter or digit that is taken for another.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_OUTBOX = "outbox.sqlite3"
_SHORT, _LONG = 8, 40


class Identity(NamedTuple):
    """``agent`` is the name on the pages, ``outbox`` the file of its stream."""

    agent: str
    outbox: Path


def state_home(options: Namespace) -> Path:
    """The folder of everything that is remembered between two runs."""
    if options.state is not None:
        return Path(options.state)
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "ctxhealth"


def of_session(options: Namespace, path: Path) -> Identity:
    """One file's sender: ``claude-code a6e4c2a0 (k7f2)`` where no name is given.

    Raises CannotSend where another process sends it, or the state cannot be used.
    """
    if options.agent:
        return _given(options)
    name = f"{options.product} {_session(path)}"
    return _minted(options, name, path.stem, f"tail\n{path}")


def of_folder(options: Namespace, folder: Path) -> Identity:
    """A tree's sender: ``claude-code on myhost (k7f2)`` where no name is given. Raises as above."""
    if options.agent:
        return _given(options)
    host = _plain(socket.gethostname().partition(".")[0], _LONG) or "this machine"
    name = f"{options.product} on {host}"
    return _minted(options, name, options.product, f"watch\n{options.product}\n{folder}")


def in_use(outbox: Path) -> CannotSend:
    return CannotSend(
        f"Another `ctxhealth tail` or `watch` runs with {outbox.parent}: end it, or give "
        "this one another --agent."
    )


def unusable(outbox: Path, trouble: object) -> CannotSend:
    return CannotSend(f"The state folder {outbox.parent} cannot be used: {trouble}.")


def _given(options: Namespace) -> Identity:
    """The name's own stream to this server; a state folder that is given holds just that."""
    if options.state is not None:
        return Identity(options.agent, Path(options.state) / _OUTBOX)
    folder = f"{_file_name(options.agent, 60)}-{_digest(_url(options), options.agent)}"
    return Identity(options.agent, state_home(options) / folder / _OUTBOX)


def _minted(options: Namespace, name: str, label: str, source: str) -> Identity:
    folder = f"{_file_name(label, _LONG)}-{_digest(_url(options), source)}"
    outbox = state_home(options) / folder / _OUTBOX
    try:
        return Identity(_kept_name(outbox, name, options.again), outbox)
    except InUse as error:
        raise in_use(outbox) from error
    except (OSError, sqlite3.Error) as error:
        raise unusable(outbox, error) from error


def _kept_name(outbox: Path, name: str, again: bool) -> str:
    """The name that the outbox was begun with; a new outbox, or one begun again, gets a new one."""
    db = Database(str(outbox))
    try:
        kept = db.meta("agent")
        if kept is not None and not again:
            return kept
        minted = f"{name} ({''.join(secrets.choice(_LETTERS) for _ in range(4))})"
        with db.transaction(durable=True) as begun:
            for table in ("meta", "events", "commands", "fences"):
                begun.execute(f"DELETE FROM {table}")
            Places.make(begun)
            begun.execute(*Places.forget())
            set_meta(begun, agent=minted)
        return minted
    finally:
        db.close()


def _session(path: Path) -> str:
    """The beginning of the session's id: as its first rows say it, else of the file's name."""
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    found = sniff(head)
    if found is not None and found.make is not None:
        reader = found.make(path.stem)
        for line in head.split(b"\n")[:-1]:
            reader.feed(line)
            if reader.chat is not None:
                return _plain(reader.chat, _SHORT) or "session"
    return _plain(path.stem, _SHORT) or "session"


def _plain(text: str, limit: int) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "", text)[:limit].strip("-._")


def _file_name(text: str, limit: int) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:limit]


def _digest(*parts: str) -> str:
    return blake2b("\n".join(parts).encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()


def _url(options: Namespace) -> str:
    return str(options.url).rstrip("/")
