"""The demo agents: a process of their own, which ends with the server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from django.conf import settings

from ctxhealth.environ import SETTINGS_DOC

# Longer than they give their own children.
_STOP_SECONDS = 10.0


class DemoAgents:
    """Started beside a server; says so where they end before it does."""

    def __init__(self, url: str, token_file: Path) -> None:
        folder = Path(settings.CTXHEALTH_DATA_DIR) / "demo"
        folder.mkdir(mode=0o700, exist_ok=True)
        self._command = [
            *(sys.executable, "-m", "ctxhealth.demo"),
            *("--url", url, "--token-file", str(token_file)),
            *("--folder", str(folder)),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def start(self) -> None:
        """Begin; returns at once."""
        self._process = subprocess.Popen(
            self._command,
            cwd=settings.BASE_DIR,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            # Ctrl-C in the terminal reaches the server alone, which then ends them.
            start_new_session=True,
        )
        threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()

    def stop(self) -> None:
        """End them, forcibly where that takes too long; nothing happens where they never began."""
        self._stopping = True
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        code = process.wait()
        if not self._stopping:
            print(f"The demo agents ended by themselves (exit code {code}).", file=sys.stderr)


def _environment() -> dict[str, str]:
    """The server's settings and secrets are not an agent's to see."""
    hidden = {form for name in SETTINGS_DOC for form in (name, f"{name}_FILE")}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PYTHONUNBUFFERED": "1"}
