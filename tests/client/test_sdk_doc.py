"""docs/sdk.md is true: its programs run, and it names what there is."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ctxhealth.client import Chat, Reporter
from ctxhealth.client.commands import KINDS
from tests.client.server import TOKEN, Server

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "sdk.md").read_text("utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_every_program_in_it_runs(number: int, server: Server, tmp_path: Path) -> None:
    program = PROGRAMS[number].replace("http://127.0.0.1:8000", "http://127.0.0.1:9")
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "CTXHEALTH_URL": server.url,
        "CTXHEALTH_TOKEN": TOKEN,
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    if "reporter.chat(" in program:
        assert server.events("chat.opened")


def test_the_first_program_reports_a_whole_turn(server: Server, tmp_path: Path) -> None:
    test_every_program_in_it_runs(0, server, tmp_path)
    assert [event["type"] for event in server.stream()] == [
        "chat.opened", "turn.started", "message.added", "request.sent", "model.replied",
        "message.added", "turn.ended",
    ]  # fmt: skip


def test_every_event_method_and_every_command_is_named_in_it() -> None:
    for name, _ in inspect.getmembers(Chat, inspect.isfunction):
        if not name.startswith("_") and name not in ("opened", "gap", "command_progress"):
            assert f"{name}(" in TEXT, name
    for kind in KINDS:
        assert f"`{kind}`" in TEXT


def test_every_argument_of_the_reporter_is_named_in_it() -> None:
    for name in inspect.signature(Reporter).parameters:
        if name not in ("runtime_version", "start", "capabilities"):
            assert re.search(rf"\b{name}\b", TEXT), name


def test_the_defaults_in_it_are_those_of_the_code() -> None:
    parameters = inspect.signature(Reporter).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    assert (defaults["queue_events"], defaults["max_events"]) == (20_000, 50_000)
    assert (defaults["queue_bytes"], defaults["max_bytes"]) == (16 * 2**20, 32 * 2**20)
    assert defaults["replay_ms"] == 24 * 3600 * 1000
