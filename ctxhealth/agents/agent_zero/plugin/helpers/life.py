"""Starting, settings changed, reloaded, stopped: one reporter per process, whatever happens."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctxhealth.client import Reporter

from . import commands, host, loops, patches, usage
from .books import Station, runtime, show
from .settings import BadSettings, Settings, read

log = logging.getLogger("ctxhealth.agent_zero")
#: This import of the module; after a reload the next one takes over.
OWNER = object()
_OUTBOX = "outbox.sqlite3"


def start(given: Mapping[str, Any] | None = None) -> None:
    """Begin to report, or take over from an earlier import. Does nothing where that is done."""
    shared = runtime()
    with shared.lock:
        if shared.owner is OWNER and given is None:
            return
        shared.owner = OWNER
        shared.generation += 1
        try:
            _replace(read(given))
        except BadSettings as error:
            log.warning("ctxhealth: %s", error)
            _end("bad settings")
        except Exception:
            # Tried once and not at every hook: what is wrong here stays so.
            log.exception("ctxhealth: the plugin could not start")
            _end("no start")


def configure(given: Any) -> None:
    """Settings were saved. Never raises: the page must be able to store them."""
    start(given if isinstance(given, Mapping) else {})


def stop(reason: str, *, forget: bool = False) -> None:
    """Undo everything; with ``forget`` also what was kept for sending."""
    shared = runtime()
    with shared.lock:
        shared.owner = OWNER
        _end(reason)
    if forget:
        shutil.rmtree(_folder(), ignore_errors=True)


def agent_made(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """Comes before the context is complete; ``context_made`` follows for A0, not for others."""
    if agent is not None and agent.number and host.is_reported(agent.context):
        station.book(agent)


def swept(station: Station, agent: Any, kwargs: dict[str, Any]) -> None:
    """The application is up: its chats are loaded by now, with their histories."""
    for context in host.contexts():
        if host.is_reported(context):
            for found in host.agents(context):
                _show_later(station, found)


def _show_later(station: Station, agent: Any) -> None:
    """On the loop of the turns, where no turn changes the history meanwhile."""
    from .watch import swallow

    def shown() -> None:
        try:
            book = station.book(agent)
            if not book.shown:
                show(book, agent)
        except Exception as error:
            swallow("sweep", error)

    loops.soon_on(host.TURNS, shown)


def _replace(chosen: Settings) -> None:
    """The new station first, so that its reporter takes the old one's unsent events over."""
    shared = runtime()
    before: Station | None = shared.station
    if not chosen.is_on:
        _end("switched off")
        return
    if before is not None and before.settings.agent != chosen.agent:
        _end("renamed")
    reporter = Reporter(
        chosen.url,
        chosen.token,
        agent=chosen.agent,
        runtime="Agent Zero",
        runtime_version=_version(),
        outbox=_outbox(),
        text=chosen.text,
    )
    made = Station(reporter, chosen)
    if before is not None and shared.station is before:
        # What is known of turns and calls under way; their handles lead to the new reporter.
        made.books = before.books
    if chosen.commands:
        commands.register(made)
    shared.station = made
    patches.install()
    if shared.callback is not None:
        usage.hush(shared.callback)
    shared.callback = usage.listen()
    swept(made, None, {})
    threading.Thread(target=_end_left, args=(made,), name="ctxhealth-latches", daemon=True).start()


def _end_left(station: Station) -> None:
    from .watch import swallow

    try:
        station.end_left_latches()
    except Exception as error:
        swallow("latches", error)


def _end(reason: str) -> None:
    shared = runtime()
    station, shared.station = shared.station, None
    patches.undo()
    if shared.callback is not None:
        usage.hush(shared.callback)
        shared.callback = None
    if station is not None:
        station.reporter.close(0.5)
        log.info("ctxhealth: %s", reason)


def _outbox() -> str | None:
    """A file beside the agent's own data, so that nothing unsent is lost with the process."""
    try:
        _folder().mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return str(_folder() / _OUTBOX)


def _folder() -> Path:
    base = host.attribute("helpers.files", "get_abs_path")
    return Path(base("usr/ctxhealth")) if base else Path("usr/ctxhealth")


def _version() -> str | None:
    read_version = host.attribute("helpers.git", "get_version")
    try:
        return str(read_version()) if read_version else None
    except Exception:
        return None
