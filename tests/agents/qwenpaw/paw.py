"""A real QwenPaw of the published package, in an environment and a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ctxhealth.agents.qwenpaw import make

RELEASE = "2.2.2.post1"
MODEL = "fake-1"
_INSTALL_S = 900
_START_S = 300


def environment(folder: Path) -> Path:
    """The Python of a virtual environment with QwenPaw in it; made where it is not there yet.

    ``CTXHEALTH_AGENTS_DIR`` names a folder that is kept, so that it is made only once.
    """
    kept = os.environ.get("CTXHEALTH_AGENTS_DIR")
    home = (Path(kept) if kept else folder) / f"qwenpaw-{RELEASE}"
    python = home / "bin" / "python"
    done = home / "installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        wanted = [str(python), "-m", "pip", "install", "-q", f"qwenpaw=={RELEASE}"]
        subprocess.run(wanted, check=True, timeout=_INSTALL_S, stdout=subprocess.DEVNULL)
        done.write_text(RELEASE)
    return python


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Paw:
    """``start`` serves; ``say`` holds a turn as the console does. ``settings`` are the plugin's."""

    def __init__(self, python: Path, folder: Path, plugin: bool = True, **settings: Any) -> None:
        self.python, self.folder = python, folder
        self.port = free_port()
        self.settings = settings
        self.plugin = plugin
        self.work = folder / "work"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _environ(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("CTXHEALTH_")}
        return {
            **kept,
            "HOME": str(self.folder / "home"),
            "QWENPAW_WORKING_DIR": str(self.work),
            "QWENPAW_SECRET_DIR": str(self.folder / "secret"),
            "QWENPAW_TELEMETRY_DISABLED": "true",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def _command(self, *words: str) -> list[str]:
        return [str(self.python.parent / "qwenpaw"), *words]

    def prepare(self, api: str) -> None:
        """Make the working folder, the model behind ``api`` and, where asked for, the plugin."""
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        subprocess.run(
            self._command("init", "--defaults", "--accept-security"),
            env=self._environ(), check=True, timeout=_START_S, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.tune(llm_max_retries=1, llm_retry_enabled=False, auto_title_config={"enabled": False})
        self.api = api
        if self.plugin:
            self.install()

    def install(self) -> None:
        made = self.work / "plugins"
        make(made)
        (made / "ctxhealth" / "config.json").write_text(json.dumps(self.settings))

    def reinstall(self, **settings: Any) -> None:
        """While it runs: as QwenPaw's own page installs a plugin."""
        self.settings.update(settings)
        source = self.folder / "source"
        shutil.rmtree(source, ignore_errors=True)
        make(source)
        (source / "ctxhealth" / "config.json").write_text(json.dumps(self.settings))
        wish = {"source": str(source / "ctxhealth"), "force": True}
        self.http("POST", "/api/plugins/install", wish)

    def tune(self, **running: Any) -> None:
        """Change the default agent's ``running`` settings; read at the next start."""
        path = self.work / "workspaces" / "default" / "agent.json"
        found = json.loads(path.read_text("utf-8"))
        for name, value in running.items():
            now = found.setdefault("running", {}).get(name)
            both = isinstance(value, dict) and isinstance(now, dict)
            found["running"][name] = {**now, **value} if both else value
        path.write_text(json.dumps(found))

    def start(self) -> None:
        self.log = (self.folder / "app.log").open("ab")
        self._process = subprocess.Popen(
            self._command("app", "--host", "127.0.0.1", "--port", str(self.port)),
            env=self._environ(), stdout=self.log, stderr=self.log, cwd=self.folder,
        )  # fmt: skip
        self.until(self._is_up, "QwenPaw did not come up", _START_S)
        self._connect_model()

    def _is_up(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self.tail()
        try:
            self.http("GET", "/api/version")
            if not self.plugin:
                # Ready as with the plugin: the list is answered once all plugins are loaded.
                return isinstance(self.http("GET", "/api/plugins"), (list, dict))
            return "ctxhealth" in json.dumps(self.http("GET", "/api/plugins"))
        except (OSError, ValueError):
            return False

    def _connect_model(self) -> None:
        self.http("POST", "/api/models/custom-providers", {
            "id": "fakeprov", "name": "Fake", "default_base_url": self.api,
            "api_key": "sk-fake", "chat_model": "OpenAIChatModel",
            "models": [{"id": MODEL, "name": MODEL}],
        })  # fmt: skip
        self.http("PUT", "/api/models/active", {
            "provider_id": "fakeprov", "model": MODEL, "scope": "agent", "agent_id": "default",
        })  # fmt: skip

    def window(self, tokens: int) -> None:
        """The model's window from the next turn on."""
        path = f"/api/models/fakeprov/models/{MODEL}/config"
        self.http("PUT", path, {"max_input_length": tokens})

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
        self.log.close()

    def __enter__(self) -> Paw:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- talking to it

    def http(self, method: str, path: str, body: Any = None) -> Any:
        """One request; the decoded answer. Raises HTTPError (an OSError)."""
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def say(self, session: str, text: str) -> list[dict[str, Any]]:
        """One turn to its end: all events of the stream."""
        return list(self.stream(session, text))

    def stream(self, session: str, text: str) -> Iterator[dict[str, Any]]:
        said = {"role": "user", "type": "message", "content": [{"type": "text", "text": text}]}
        body = {
            "input": [said], "session_id": session, "user_id": "u1", "channel": "console",
            "stream": True,
        }  # fmt: skip
        request = urllib.request.Request(
            self.url + "/api/console/chat",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            for line in answer:
                if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
                    yield json.loads(line[5:])

    def session(self, session: str) -> dict[str, Any]:
        """The saved session, as QwenPaw itself will load it."""
        folder = self.work / "workspaces" / "default" / "sessions" / "console"
        found = [path for path in folder.glob("*.json") if path.stem.endswith(session)]
        assert len(found) == 1, (session, [path.name for path in folder.glob("*")])
        read: dict[str, Any] = json.loads(found[0].read_text("utf-8"))
        return read

    def context(self, session: str) -> list[dict[str, Any]]:
        """The messages that the next turn starts with."""
        found: list[dict[str, Any]] = self.session(session)["agent"]["state"]["context"]
        return found

    def tail(self, size: int = 3_000) -> str:
        return (self.folder / "app.log").read_text("utf-8", "replace")[-size:]

    def until(self, found: Callable[[], Any], why: str, seconds: float = 30.0) -> Any:
        end = time.monotonic() + seconds
        while True:
            value = found()
            if value:
                return value
            assert time.monotonic() < end, f"{why} within {seconds} s\n{self.tail()}"
            time.sleep(0.1)
