"""A real server in its own process for each module, with tokens of every kind."""

from __future__ import annotations

import json
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.browser.server import Server
from tests.contract.agent import RawAgent

TOKENS = {
    "agents": ["ingest", "command"],
    "ingest-only": ["ingest"],
    "reader": ["read"],
    "ops": ["read", "operate"],
}


class World:
    """A server, its tokens, its database file and its API."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder)
        self.tokens: dict[str, str] = self.server.seed(people={}, tokens=TOKENS)["tokens"]

    @property
    def path(self) -> Path:
        return self.server.folder / "ctxhealth.sqlite3"

    def agent(self, token: str = "agents", **headers: str) -> RawAgent:
        return RawAgent(self.server.socket, self.tokens[token], headers)

    def rows(self, sql: str, *args: Any) -> list[tuple[Any, ...]]:
        """What stands in the database, read beside the server."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=5)) as reader:
            return reader.execute(sql, args).fetchall()

    def seqs(self, agent: str, epoch: str = "e1") -> list[int]:
        """Every stored seq of a stream, in the order of the log."""
        sql = (
            "SELECT e.seq FROM store_event e JOIN store_stream s ON s.id = e.stream_id"
            " JOIN store_agent a ON a.id = s.agent_id WHERE a.name = ? AND s.epoch = ?"
            " ORDER BY e.id"
        )
        return [row[0] for row in self.rows(sql, agent, epoch)]

    def chat(self, agent: str, external: str = "c1") -> int:
        sql = (
            "SELECT c.id FROM store_chat c JOIN store_agent a ON a.id = c.agent_id"
            " WHERE a.name = ? AND c.external_id = ?"
        )
        return int(self.rows(sql, agent, external)[0][0])

    def http(
        self, method: str, path: str, body: Any = None, token: str = "ops", **headers: str
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(
            self.server.origin + path,
            data=None if body is None else data,
            method=method,
            headers={
                "Authorization": f"Bearer {self.tokens[token]}",
                "Content-Type": "application/json",
                **headers,
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def press(self, chat: int, kind: str, key: str, **fields: Any) -> tuple[int, Any]:
        body = {"kind": kind, "reason": "test", "idempotency_key": key, **fields}
        return self.http("POST", f"/api/v1/chats/{chat}/commands", body)

    def command(self, command: str) -> dict[str, Any]:
        status, answer = self.http("GET", f"/api/v1/commands/{command}")
        assert status == 200, answer
        found: dict[str, Any] = answer
        return found

    def verify(self) -> None:
        """The fold of the log is what is stored; the server must be stopped."""
        import os
        import subprocess
        import sys

        done = subprocess.run(
            [sys.executable, "-m", "tests.contract.verifying"],
            env={
                **os.environ,
                "CTXHEALTH_DATA_DIR": str(self.server.folder),
                "DJANGO_SETTINGS_MODULE": "ctxhealth.settings",
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Shared by a module; every test uses an agent of its own name."""
    made = World(tmp_path_factory.mktemp("contract"))
    made.server.start()
    yield made
    made.server.stop()


@pytest.fixture
def own_world(tmp_path: Path) -> Iterator[World]:
    """For tests that kill, stop or rewind their server."""
    made = World(tmp_path)
    made.server.start()
    yield made
    made.server.stop()


@pytest.fixture
def lock(world: World) -> Iterator[Callable[[], Callable[[], None]]]:
    """Hold the database's write lock, as another program could; call the result to let go."""
    holders: list[sqlite3.Connection] = []

    def hold() -> Callable[[], None]:
        holder = sqlite3.connect(world.path, timeout=5, isolation_level=None)
        holders.append(holder)
        holder.execute("BEGIN IMMEDIATE")
        return lambda: (holder.execute("ROLLBACK"), None)[1]

    yield hold
    for holder in holders:
        holder.close()
