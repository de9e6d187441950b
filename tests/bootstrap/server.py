"""A server started by manage.py, as a process, read line by line."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from ctxhealth.environ import SETTINGS_DOC
from tests.quality.sources import ROOT

READY_SECONDS = 60.0
END_SECONDS = 30.0


def environment(data_dir: Path, **settings: str) -> dict[str, str]:
    """The shell's, with the test's data folder and settings and nobody else's."""
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS_DOC}
    return {**kept, "CTXHEALTH_DATA_DIR": str(data_dir), "CTXHEALTH_NO_VENV": "1", **settings}


def run(data_dir: Path, *args: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A command that should end by itself."""
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *args],
        cwd=ROOT,
        env=environment(data_dir, **settings),
        capture_output=True,
        text=True,
        check=False,
        timeout=READY_SECONDS,
    )


class Server:
    """`manage.py up` or `serve` in a process; `output` grows as it speaks."""

    def __init__(self, data_dir: Path, *args: str, **settings: str) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.output = ""
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), *args],
            cwd=ROOT,
            env=environment(data_dir, **settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, text: str) -> None:
        """Until `text` was said; AssertionError with what was said instead."""
        deadline = time.monotonic() + READY_SECONDS
        while text not in self.output:
            try:
                line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            assert line is not None, f"never said {text!r}: {self.output}"
            self.output += line

    def end(self, signum: int = signal.SIGTERM) -> int:
        """Ask it to end and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signum)
        return self.process.wait(timeout=END_SECONDS)

    def kill(self) -> None:
        """At the end of a test, whatever happened."""
        self.process.kill()
        self.process.wait()
