"""A real server in a process of its own, which a test may stop, kill and start again."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
STOP_SECONDS = 20


class Server:
    """`manage.py serve` on a free port over its own data folder.

    ``seed`` makes people and tokens in that folder; call it before ``start``.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.port = 0
        self.environment = environment
        self.lines: list[str] = []
        self.answer: dict[str, Any] = {}
        self._process: subprocess.Popen[str] | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def seed(self, **wanted: Any) -> dict[str, Any]:
        """Run tests/browser/seed.py beside the server; its answer."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.browser.seed", json.dumps(wanted)],
            cwd=ROOT,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2_000:]
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def start(self) -> None:
        """Serve, on the same port as before where there was one."""
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--port", str(self.port)],
            cwd=ROOT,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        says: queue.Queue[str] = queue.Queue()
        assert self._process.stdout is not None
        threading.Thread(target=self._listen, args=(self._process.stdout, says)).start()
        self.port = _port_in(self._wait_for("serves at", says))

    def stop(self) -> None:
        """As a service manager stops it: asked, and waited for."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As the power goes."""
        self._end(signal.SIGKILL)

    def log(self) -> str:
        return "\n".join(self.lines)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def _listen(self, stream: IO[str], says: queue.Queue[str]) -> None:
        for line in stream:
            self.lines.append(line.rstrip())
            says.put(line)
        says.put("")

    def _wait_for(self, text: str, says: queue.Queue[str]) -> str:
        while True:
            try:
                line = says.get(timeout=START_SECONDS)
            except queue.Empty:
                line = ""
            assert line, f"the server did not start:\n{self.log()}"
            if text in line:
                return line

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CTXHEALTH", "DATABASE"))}
        return {
            **kept,
            "CTXHEALTH_NO_VENV": "1",
            "CTXHEALTH_DATA_DIR": str(self.folder),
            "DJANGO_SETTINGS_MODULE": "ctxhealth.settings",
            "PYTHONUNBUFFERED": "1",
            **self.environment,
        }


def _port_in(line: str) -> int:
    return int(line.rstrip().rpartition(":")[2])
