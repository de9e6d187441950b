"""A real Maka runtime host, started from a built source tree, against a scripted provider.

The tree is named by CTXHEALTH_MAKA_TREE (it holds packages/cli/dist/cli.js), node (22.19 or newer)
by CTXHEALTH_MAKA_NODE where the one on the path is older.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from ctxhealth.agents.maka.host import GRANTS
from tests.agents.maka.owner import Owner
from tests.agents.provider import Provider

TREE = os.environ.get("CTXHEALTH_MAKA_TREE")
NODE = os.environ.get("CTXHEALTH_MAKA_NODE", "node")
MODEL = "fake-chat"


class RealHost:
    """``window`` is what the connection declares for the model."""

    def __init__(self, folder: Path, provider: Provider, window: int = 16_000) -> None:
        assert TREE is not None
        self._cli = str(Path(TREE) / "packages" / "cli" / "dist" / "cli.js")
        self.root, self._project = folder / "root", folder / "project"
        self._project.mkdir(parents=True)
        self._provider, self._window = provider, window
        self._process: subprocess.Popen[str] | None = None
        self.ready: dict[str, Any] = {}
        self.port = _free_port()
        self._folder = folder

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/runtime-host"

    def __enter__(self) -> RealHost:
        self.start()
        self.project: str = self._run("project", "add", str(self._project))["project"]["id"]
        preset = ("--principal", "owner", "--preset", "desktop-client")
        self.owner_credential: str = self._run("access", "issue", *preset)["credential"]
        self.credential = self.issue(GRANTS)
        self.owner = Owner(self.url, self.owner_credential)
        self._connect_provider()
        return self

    def __exit__(self, *_: object) -> None:
        self.owner.close()
        self.stop()

    def start(self) -> None:
        log = (self._folder / "host.log").open("a")
        given = ("--project-root", f"p={self._project}", "--websocket-port", str(self.port))
        self._process = subprocess.Popen(
            [NODE, self._cli, "runtime-host", "serve", "--root", str(self.root), *given, "--json"],
            stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.ready = json.loads(self._process.stdout.readline())

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(20)

    def again(self) -> None:
        """Another process over the same root, with the same credentials."""
        self.owner.close()
        self.stop()
        self.start()
        self.owner = Owner(self.url, self.owner_credential)

    def issue(self, grants: tuple[str, ...], principal: str = "ctxhealth-bridge") -> str:
        wanted = [word for grant in grants for word in ("--grant", grant)]
        made: str = self._run("access", "issue", "--principal", principal, *wanted)["credential"]
        return made

    def session(self, name: str, session: str) -> str:
        self.owner.ask(
            "session.create", sessionId=session, name=name, permissionMode="bypass",
            workspace={"kind": "project", "projectId": self.project},
            modelTarget={"kind": "explicit", "connectionSlug": "fake", "model": MODEL},
        )  # fmt: skip
        return session

    def _connect_provider(self) -> None:
        start = self.owner.ask("connection.catalog.query", kind="start")
        draft = {
            "slug": "fake", "name": "Fake", "providerType": "openai-compatible", "enabled": True,
            "baseUrl": self._provider.url, "enabledModelIds": [MODEL],
            "relayModelProfiles": {MODEL: {"contextWindow": self._window}},
        }  # fmt: skip
        made = self.owner.ask(
            "connection.catalog.create", expectedCatalogRevision=start["revision"],
            connection=draft,
        )  # fmt: skip
        connection = made["connection"]["connectionId"]
        self.owner.ask(
            "credential.vault.set", expected=None, secret="sk-fake",
            locator={"scope": "connection", "connectionId": connection, "kind": "api_key"},
        )  # fmt: skip
        self.owner.ask("connection.models.fetch", connectionId=connection)
        now = self.owner.ask("connection.catalog.query", kind="start")
        self.owner.ask(
            "connection.catalog.set-default-target", expectedCatalogRevision=now["revision"],
            target={"connectionId": connection, "modelId": MODEL},
        )  # fmt: skip

    def _run(self, *words: str) -> dict[str, Any]:
        done = subprocess.run(
            [NODE, self._cli, "runtime-host", *words, "--root", str(self.root)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
