"""A real server half, and the command run against it in this process or in one of its own."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxhealth.cli import main
from ctxhealth.client import limits
from tests.client.server import TOKEN, Server, running

_numbers = itertools.count(1)


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture(autouse=True)
def _quick_reconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(limits, "LONGEST_DELAY_S", 0.05)


class Command:
    """``ctxhealth`` with one agent name and one state folder over several runs."""

    def __init__(self, server: Server, state: Path) -> None:
        self.common = [
            "--url", server.url, "--token", TOKEN, "--state", str(state),
            "--agent", f"claude-code-{next(_numbers)}",
        ]  # fmt: skip

    def __call__(self, *arguments: object) -> int:
        """Run in this process; the exit code."""
        return main([str(argument) for argument in arguments] + self.common)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Run in a process of its own, which is ended after the test."""
        code = "import sys; from ctxhealth.cli import main; sys.exit(main())"
        return subprocess.Popen(
            [sys.executable, "-c", code, *[str(argument) for argument in arguments], *self.common],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip


@pytest.fixture
def command(server: Server, tmp_path: Path) -> Command:
    return Command(server, tmp_path / "state")


@pytest.fixture
def start(command: Command) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: object) -> subprocess.Popen[str]:
        started.append(command.start(*arguments))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Ctrl-C; its exit code and what it printed."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err
