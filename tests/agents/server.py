"""A real ctxhealth server for an integration's test: its address, its tokens, its API."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tests.browser.server import Server

_TOKENS = {"agents": ["ingest", "command"], "ops": ["read", "operate"]}
_ENDED = {"succeeded", "failed", "refused", "expired", "cancelled", "unknown"}
_keys = count(1)


class House:
    """`manage.py serve` on a free port over ``folder``, an agent token and an operator's token."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.server = Server(folder, **environment)
        self.tokens: dict[str, str] = self.server.seed(people={}, tokens=_TOKENS)["tokens"]

    def __enter__(self) -> House:
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    @property
    def url(self) -> str:
        return self.server.origin

    @property
    def agent_token(self) -> str:
        return self.tokens["agents"]

    @property
    def operator_token(self) -> str:
        return self.tokens["ops"]

    def http(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request of the operator: status and decoded answer."""
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Authorization": f"Bearer {self.operator_token}",
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def get(self, path: str) -> Any:
        status, answer = self.http("GET", path)
        assert status == 200, (path, status, answer)
        return answer

    def chats(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("/api/v1/chats")["chats"]
        return found

    def chat(self, external: str) -> dict[str, Any]:
        """The chat that its agent calls ``external``, with everything; waited for."""
        row = self.until(lambda: self._row(external), f"no chat {external}")
        found: dict[str, Any] = self.get(f"/api/v1/chats/{row['id']}")
        return found

    def events(self, external: str, kind: str | None = None) -> list[dict[str, Any]]:
        """The chat's log as it was stored, oldest first, of one type where ``kind`` is given."""
        chat, after, found = self.chat(external)["id"], 0, list[dict[str, Any]]()
        while True:
            wanted = f"&type={kind}" if kind else ""
            page = self.get(f"/api/v1/chats/{chat}/events?after={after}&limit=500{wanted}")
            found += [{**row["body"], "chat_seq": row["chat_seq"]} for row in page["events"]]
            if not page["next"]:
                return found
            after = int(page["next"])

    def press(self, external: str, kind: str, **args: Any) -> dict[str, Any]:
        """Press the button as the page does; the command as queued."""
        body = {
            "kind": kind,
            "reason": "a test presses",
            "idempotency_key": f"press-{next(_keys)}-{time.time_ns()}",
            "args": args,
        }
        path = f"/api/v1/chats/{self.chat(external)['id']}/commands"
        status, answer = self.http("POST", path, body)
        assert status == 201, (status, answer)
        found: dict[str, Any] = answer["command"]
        return found

    def command(self, command: dict[str, Any]) -> dict[str, Any]:
        """The command as it stands now."""
        found: dict[str, Any] = self.get(f"/api/v1/commands/{command['id']}")["command"]
        return found

    def ended(self, command: dict[str, Any], seconds: float = 30.0) -> dict[str, Any]:
        """The command once it ended, whichever way."""

        def over() -> dict[str, Any] | None:
            now = self.command(command)
            return now if now["state"] in _ENDED else None

        result: dict[str, Any] = self.until(over, f"{command['kind']} did not end", seconds)
        return result

    def until(self, found: Callable[[], Any], why: str, seconds: float = 20.0) -> Any:
        """Poll until ``found()`` is true; its value."""
        end = time.monotonic() + seconds
        while True:
            value = found()
            if value:
                return value
            assert time.monotonic() < end, f"{why} within {seconds} s\n{self.server.log()[-2_000:]}"
            time.sleep(0.05)

    def _row(self, external: str) -> dict[str, Any] | None:
        return next((row for row in self.chats() if row["chat"] == external), None)
