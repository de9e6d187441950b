"""What one process of the server is made of, and how it starts and stops.

A runtime belongs to one event loop. The server starts it by ASGI's lifespan; where there is no
lifespan (tests, another server) the first use on a loop starts it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

from ctxhealth.imports.worker import ImportWorker
from ctxhealth.ingest.connections import ConnectionTable
from ctxhealth.ingest.gate import Gate
from ctxhealth.live.service import Live
from ctxhealth.store import incarnation, through
from ctxhealth.store.ticker import Ticker
from ctxhealth.store.upkeep import Upkeep
from ctxhealth.store.writer import Writer
from ctxhealth.web.agent_rows import connections_from

# The writer's thread folds for milliseconds at a time; the loop must not wait the usual 5 ms
# for each turn at the interpreter.
SWITCH_SECONDS = 0.001
COLLECT = (50_000, 20, 50)
_LOG = logging.getLogger(__name__)
_runtime: Runtime | None = None


class Runtime:
    """The rooms of one process: ``writer``, ``gate`` (agents), ``live`` (browsers), ``ticker``."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.writer = Writer()
        self.live = Live()
        self.gate = Gate(self.writer)
        self.ticker = Ticker()
        self.upkeep = Upkeep()
        self.imports = ImportWorker()
        self.writer.on_commit_hooks.append(self.live.on_commit)
        self.writer.on_command_hooks.append(self.live.on_commit)

    @property
    def connections(self) -> ConnectionTable:
        return self.gate.table

    @property
    def board(self) -> Any:
        return self.live.board

    def start(self) -> None:
        self.writer.start()
        self.gate.start()
        self.ticker.start()
        self.upkeep.start()
        self.imports.start()
        connections_from(self.connections.infos)

    async def stop(self) -> None:
        """Agents are told to come back, what was taken is written, states are stored."""
        connections_from(None)
        await self.ticker.stop()
        await asyncio.to_thread(self.upkeep.stop)
        await asyncio.to_thread(self.imports.stop)
        await self.gate.stop()
        await asyncio.to_thread(self.writer.stop)
        await self.live.stop()


def get() -> Runtime:
    """This loop's runtime, started where it was not. Call it on the loop."""
    global _runtime
    loop = asyncio.get_running_loop()
    if _runtime is None or _runtime.loop is not loop:
        if _runtime is not None:
            _runtime.upkeep.stop()
            _runtime.imports.stop()
            _runtime.writer.stop()
        _runtime = Runtime()
        _runtime.start()
    return _runtime


async def stop() -> None:
    """Stop this loop's runtime, if there is one."""
    global _runtime
    runtime, _runtime = _runtime, None
    if runtime is not None:
        await runtime.stop()


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    """ASGI lifespan: start before the first request, drain after the last."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await _startup(send)
        elif message["type"] == "lifespan.shutdown":
            await stop()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _startup(send: Any) -> None:
    try:
        await asyncio.to_thread(prepare)
        get()
    except Exception as error:
        _LOG.exception("the server cannot start")
        text = f"the server cannot start: {type(error).__name__}: {str(error)[:200]}"
        await send({"type": "lifespan.startup.failed", "message": text})
        return
    sys.setswitchinterval(SWITCH_SECONDS)
    _tame_collector()
    await send({"type": "lifespan.startup.complete"})


def _tame_collector() -> None:
    """What was imported stays; cycles are rare on the way of an event, and looking for them cost
    a tenth of the writer's time at the usual thresholds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)


def prepare() -> None:
    """Before serving: settle which life of the database this is, and who is connected (nobody)."""
    from django.db import connection

    from ctxhealth.store import startup

    assert through.installed() is None, "one writer per process"
    try:
        folder = Path(settings.CTXHEALTH_DATA_DIR)
        folder.mkdir(parents=True, exist_ok=True)
        if incarnation.settle(folder):
            _LOG.warning("The database was put back: agents are asked to send again.")
        startup.settle()
    finally:
        connection.close()
