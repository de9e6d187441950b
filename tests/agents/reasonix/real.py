"""The published Reasonix, installed in a folder of its own and driven over its HTTP server."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

VERSION = "1.38.11"
WINDOW = 30_000
_START_S = 60.0
_CONFIG = """default_model = "fake"
[agent]
execution_model = "fake"
[[providers]]
name = "fake"
kind = "openai"
base_url = "{url}"
model = "fake-small"
api_key_env = "FAKE_KEY"
context_window = {window}
"""


def install(folder: Path) -> Path:
    """The binary of ``VERSION`` below ``folder``; a counted skip where npm cannot bring it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm: install Node.js")
    command = [npm, "install", "--no-audit", "--no-fund", f"reasonix@{VERSION}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"needs reasonix from npm: {done.stderr.strip()[-200:]}")
    found = sorted(folder.glob("node_modules/@reasonix/*/bin/reasonix"))
    assert found, "reasonix came without a binary for this platform"
    return found[0]


class Reasonix:
    """`reasonix serve` over ``folder`` against the provider at ``provider_url``."""

    def __init__(self, binary: Path, folder: Path, provider_url: str) -> None:
        self._binary, self._folder = binary, folder
        self.token = secrets.token_urlsafe(24)
        self.token_file = folder / "token"
        self.token_file.write_text(self.token)
        self.token_file.chmod(0o600)
        home = folder / "home" / ".reasonix"
        home.mkdir(parents=True)
        (home / "config.toml").write_text(_CONFIG.format(url=provider_url, window=WINDOW))
        (folder / "project").mkdir()
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Reasonix:
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self._folder / "home"), "FAKE_KEY": "k",
        }  # fmt: skip
        command = [
            str(self._binary), "serve", "--addr", f"127.0.0.1:{self.port}", "--auth", "token",
            "--token-file", str(self.token_file), "--no-open",
        ]  # fmt: skip
        with open(self._folder / "serve.log", "ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder / "project", env=environment, stdout=log, stderr=log
            )
        self.until(lambda: self._answers(), "it to answer", _START_S)
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Cookie": f"reasonix_token={self.token}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        said = answer.read().decode()
        connection.close()
        return answer.status, said

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask("GET", "/status")[1])
        return found

    @property
    def session(self) -> str:
        return str(self.status()["runtimeState"]["sessionId"])

    def used(self) -> int:
        return int(json.loads(self.ask("GET", "/context")[1])["used"])

    def say(self, text: str, seconds: float = 60.0) -> dict[str, Any]:
        """One turn, from its message to its end; the state of the runtime after it."""
        before = self.status()["runtimeState"]["turnId"]
        self.submit(text)

        def over() -> Any:
            now = self.status()["runtimeState"]
            return now if now["turnId"] != before and not now["running"] else None

        found: dict[str, Any] = self.until(over, "the turn's end", seconds)
        return found

    def submit(self, text: str) -> None:
        status, said = self.ask("POST", "/submit", {"input": text})
        assert status == 202, said

    def until(self, found: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = found()
            if value:
                return value
            time.sleep(0.05)
        log = (self._folder / "serve.log").read_text("utf-8", "replace")[-1_500:]
        raise AssertionError(f"waited {seconds:.0f} s for {what}\n{log}")

    def _answers(self) -> bool:
        try:
            return self.ask("GET", "/status")[0] == 200
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
