"""The way of every write: through the writer's thread where one runs, else at once.

A service runs inside a transaction with a ``Unit`` around it, wherever it is called from. What
it raises undoes its own work alone (a savepoint) and reaches the caller after the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, transaction

from ctxhealth.store import unit
from ctxhealth.store.clock import now_ms
from ctxhealth.store.intake import Intake, Receipt, StreamHandle
from ctxhealth.store.states import StateCache

if TYPE_CHECKING:
    from ctxhealth.store.writer import Writer

P = ParamSpec("P")
R = TypeVar("R")


# The database is away, locked or full; also where a pool has no connection to give in time.
AWAY = (OperationalError, InterfaceError)


class StoreBusy(Exception):
    """The database did not take it in time; nothing was written, try again later."""


_writer: Writer | None = None


def install(writer: Writer | None) -> None:
    """Make this the process's writer; None when it stopped."""
    global _writer
    _writer = writer


def installed() -> Writer | None:
    """The running writer of this process, if there is one."""
    return _writer


def call(fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run ``fn`` in a transaction and give its result after the commit; blocks."""
    if unit.current() is not None:
        return fn(*args, **kwargs)
    if _writer is not None and _writer.running:
        return _writer.call(fn, *args, **kwargs)
    return _inline(fn, *args, **kwargs)


def soon(fn: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Write this when there is time for it; nobody waits, and it may be lost."""
    if _writer is not None and _writer.running:
        _writer.enqueue(fn, *args, **kwargs)
        return
    with suppress(*AWAY):
        _inline(fn, *args, **kwargs)


async def acall(fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The same without blocking the event loop."""
    if _writer is not None and _writer.running:
        return await asyncio.wrap_future(_writer.enqueue(fn, *args, **kwargs))
    return await asyncio.to_thread(lambda: _inline_closing(lambda: fn(*args, **kwargs)))


def submit_inline(stream: StreamHandle, intakes: list[Intake]) -> Receipt:
    """Store events of one stream at once, where no writer's thread runs."""
    return _inline(_submit, stream, intakes)


def _submit(stream: StreamHandle, intakes: list[Intake]) -> Receipt:
    work = unit.current()
    assert work is not None
    return work.submit(stream, None, intakes)


def _inline(fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """No thread runs (a management command, a test): this thread writes, and remembers nothing."""
    with transaction.atomic():
        work = unit.Unit(StateCache(cap=0), now_ms())
        unit.enter(work)
        try:
            result = fn(*args, **kwargs)
            work.finish()
        finally:
            unit.enter(None)
    return result


def _inline_closing(fn: Callable[[], R]) -> R:
    from django.db import connection

    try:
        return _inline(fn)
    finally:
        connection.close()
