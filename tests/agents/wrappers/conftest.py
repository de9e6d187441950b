"""The server's half of the protocol, and a chat that reports to it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxhealth.client import Chat, Reporter, limits
from tests.client.server import TOKEN, Server
from tests.client.server import running as serving

_numbers = itertools.count(1)
PACKAGES = [
    "openai", "anthropic", "langchain", "langgraph", "langchain-openai", "langchain-anthropic",
    "websockets",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(limits, "LONGEST_DELAY_S", 0.05)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def chat(server: Server) -> Iterator[Chat]:
    reporter = Reporter(server.url, TOKEN, agent=f"wrapped-{next(_numbers)}")
    yield reporter.chat("c", window=1_000)
    server.stop()
    reporter.close(0)


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the newest packages; a counted skip where they cannot be had."""
    folder = tmp_path_factory.mktemp("packages")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    if done.returncode:
        pytest.skip(f"needs {', '.join(PACKAGES)} from PyPI: {done.stderr.strip()[-200:]}")
    return python


def told(server: Server, chat: Chat) -> list[dict[str, Any]]:
    """Everything reported so far but the opening, without envelope and times."""
    assert chat.reporter.flush(10), chat.reporter.status()
    left_out = ("seq", "ts", "chat", "ms")
    return [
        {key: value for key, value in event.items() if key not in left_out}
        for event in server.events()
        if event["type"] not in ("chat.opened", "chat.updated")
    ]


def kinds(server: Server, chat: Chat) -> list[str]:
    return [event["type"] for event in told(server, chat)]


def only(server: Server, chat: Chat, kind: str) -> list[dict[str, Any]]:
    return [event for event in told(server, chat) if event["type"] == kind]
