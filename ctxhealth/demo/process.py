"""One demo agent's process: a reporter, a thread for each chat."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType

from ctxhealth.client import Reporter
from ctxhealth.demo.agents import DemoAgent, Role
from ctxhealth.demo.body import Body
from ctxhealth.demo.loop import Loop

# How long the scripted models take to answer, in seconds at pace 1.
LATENCY_S = 1.4


def run_agent(agent: DemoAgent, *, url: str, token: str, folder: Path | None, pace: float) -> None:
    """Live until SIGTERM or SIGINT. ``folder`` keeps backups; None: a temporary one."""
    over = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        over.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    with tempfile.TemporaryDirectory(prefix="ctxhealth-demo-") as scratch:
        _live(agent, url, token, folder or Path(scratch), pace, over)


def _live(
    agent: DemoAgent, url: str, token: str, folder: Path, pace: float, over: threading.Event
) -> None:
    reporter = Reporter(
        url,
        token,
        agent=agent.name,
        runtime=agent.runtime,
        runtime_version=agent.version,
        capabilities={"fallback": agent.fallback},
        start=False,
    )
    loops = [_loop(reporter, role, folder, pace) for role in agent.roles]
    reporter.start()
    for loop in loops:
        name = f"chat-{loop.body.spec.id}"
        threading.Thread(target=loop.run, name=name, daemon=True).start()
    # A wait with a timeout: an untimed one would not let the signal handler run everywhere.
    while not over.wait(1):
        pass
    for loop in loops:
        loop.over.set()
    reporter.close(timeout=2)


def _loop(reporter: Reporter, role: Role, folder: Path, pace: float) -> Loop:
    chat = reporter.chat(role.spec.id, **role.spec.facts())
    return role.loop(
        reporter,
        Body(chat, role.spec, latency=LATENCY_S * pace, run=f"{int(time.time()):x}-"),
        folder,
        pace,
    )
