"""The floor: a raw ASGI websocket, typed decode, one writer thread, one insert, ack after commit.

    python -m benchmarks.ingest_floor PORT DATABASE

What it leaves out is what the product is for: dedupe, fold, findings, projections, rights.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import sys
import threading
from contextlib import suppress
from typing import Any

import msgspec
import uvicorn

from ctxhealth.wire.events import AgentEvent

with suppress(ImportError):
    import pysqlite3 as sqlite3  # type: ignore[no-redef]

BATCH = 1_000
LINGER_S = 0.002


class Frame(msgspec.Struct):
    type: str
    epoch: str = ""
    events: list[msgspec.Raw] = []


FRAME = msgspec.json.Decoder(Frame)
EVENT: Any = msgspec.json.Decoder(AgentEvent)
Job = tuple["Connection", list[tuple[Any, str]]]
JOBS: queue.SimpleQueue[Job] = queue.SimpleQueue()


class Connection:
    def __init__(self, send: Any, number: int) -> None:
        self.send, self.number = send, number
        self.upto = 0
        self.wake = asyncio.Event()


def write(path: str, loop: asyncio.AbstractEventLoop) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for line in (
        "PRAGMA journal_mode=WAL",
        "PRAGMA synchronous=FULL",
        "PRAGMA wal_autocheckpoint=0",
        "CREATE TABLE event (id INTEGER PRIMARY KEY, chat TEXT, seq INT, kind TEXT, ts INT,"
        " body TEXT)",
        "CREATE UNIQUE INDEX once ON event (chat, seq)",
        "CREATE TABLE chat (chat TEXT PRIMARY KEY, seq INT)",
    ):
        db.execute(line)
    while True:
        jobs, rows, heads = _batch()
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO event (chat, seq, kind, ts, body) VALUES (?,?,?,?,?)", rows)
        db.executemany(
            "INSERT INTO chat VALUES (?, ?) ON CONFLICT (chat) DO UPDATE SET seq = excluded.seq",
            list(heads.items()),
        )
        db.execute("COMMIT")
        loop.call_soon_threadsafe(_answer, jobs)


def _batch() -> tuple[list[tuple[Connection, int]], list[tuple[Any, ...]], dict[str, int]]:
    jobs: dict[Connection, int] = {}
    rows: list[tuple[Any, ...]] = []
    heads: dict[str, int] = {}
    job: Job | None = JOBS.get()
    while job is not None:
        connection, events = job
        for event, body in events:
            chat = f"{connection.number}/{event.chat}"
            rows.append((chat, event.seq, type(event).__name__, event.ts, body))
            heads[chat] = event.seq
            jobs[connection] = event.seq
        try:
            job = JOBS.get(timeout=LINGER_S) if len(rows) < BATCH else None
        except queue.Empty:
            job = None
    return list(jobs.items()), rows, heads


def _answer(jobs: list[tuple[Connection, int]]) -> None:
    for connection, upto in jobs:
        connection.upto = upto
        connection.wake.set()


async def _acks(connection: Connection) -> None:
    while True:
        await connection.wake.wait()
        connection.wake.clear()
        text = f'{{"type":"ack","epoch":"e1","upto":{connection.upto}}}'
        await connection.send({"type": "websocket.send", "text": text})


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    await receive()
    await send({"type": "websocket.send", "text": '{"type":"welcome"}'})
    connection = Connection(send, id(send))
    acks = asyncio.create_task(_acks(connection))
    while (message := await receive())["type"] == "websocket.receive":
        frame = FRAME.decode(message["text"])
        JOBS.put((connection, [(EVENT.decode(raw), bytes(raw).decode()) for raw in frame.events]))
    acks.cancel()


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, path: str) -> None:
        super().__init__(config)
        self.path = path

    async def startup(self, sockets: Any = None) -> None:
        loop = asyncio.get_running_loop()
        threading.Thread(target=write, args=(self.path, loop), daemon=True).start()
        await super().startup(sockets)
        print("ready", flush=True)


if __name__ == "__main__":
    config = uvicorn.Config(
        app, port=int(sys.argv[1]), loop="uvloop", ws="websockets-sansio", lifespan="off",
        ws_max_size=262_144, ws_max_queue=4, ws_per_message_deflate=False, log_level="warning",
    )  # fmt: skip
    Server(config, sys.argv[2]).run()
