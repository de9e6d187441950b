"""Is this process alive, and can it do its work right now?"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

from ctxhealth.runtime import Runtime

QUERY_SECONDS = 2.0
LATE_LOOP_SECONDS = 1.0


@dataclass(frozen=True)
class Readiness:
    """``database``, ``writer`` and ``loop`` are "ok" or one sentence that says what is wrong."""

    database: str
    writer: str
    loop: str

    @property
    def ready(self) -> bool:
        return self.database == self.writer == self.loop == "ok"

    def document(self) -> dict[str, Any]:
        return {"ready": self.ready, **asdict(self)}


async def readiness(runtime: Runtime) -> Readiness:
    return Readiness(await _database(), _writer(runtime), await _loop())


async def _database() -> str:
    try:
        async with asyncio.timeout(QUERY_SECONDS):
            await sync_to_async(_query, thread_sensitive=False)()
    except TimeoutError:
        return f"The database did not answer in {QUERY_SECONDS:g} s."
    except Exception as error:
        return f"The database cannot be read: {type(error).__name__}."
    return "ok"


def _query() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        connection.close()


def _writer(runtime: Runtime) -> str:
    if not runtime.writer.running:
        return "The writer does not run."
    return f"Nothing can be written: {runtime.writer.busy}." if runtime.writer.busy else "ok"


async def _loop() -> str:
    """How long one turn of the event loop takes: everything that waits has its turn first."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0)
    took = loop.time() - began
    return "ok" if took < LATE_LOOP_SECONDS else f"One turn of the event loop took {took:.1f} s."
