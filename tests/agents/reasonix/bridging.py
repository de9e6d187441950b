"""The bridge's command in a process of its own, as its user starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


class BridgeProcess:
    """`ctxhealth bridge reasonix` with its state in ``state``, until ``stop``."""

    def __init__(self, state: Path, *, url: str, token: str, host: str, token_file: Path) -> None:
        self._arguments = [
            "bridge", "reasonix", "--url", url, "--state", str(state), "--reasonix", host,
            "--reasonix-token-file", str(token_file),
        ]  # fmt: skip
        self._log = state.with_suffix(".log")
        self._environment = {**os.environ, "CTXHEALTH_TOKEN": token, "PYTHONPATH": str(ROOT)}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> BridgeProcess:
        program = "import sys; from ctxhealth.cli.main import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", program, *self._arguments]
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )
        return self

    def stop(self, how: signal.Signals = signal.SIGINT) -> int | None:
        """The exit code; None where it does not run."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.send_signal(how)
        return process.wait(20)

    def wait(self, seconds: float = 20.0) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")
