"""What outlives a reload of this package in one process.

Some hosts drop a plugin's modules and import them anew while the old threads still run. The
registry hangs in ``sys.modules`` under a name of its own, so the new copy finds the old reporter.
"""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

_NAME = "_ctxhealth_runtime"


def runtime() -> Any:
    """``reporters``: agent -> live reporter; ``running``: ids of commands now being acted on."""
    found = sys.modules.get(_NAME)
    if found is None:
        fresh = types.ModuleType(_NAME, "Reporters of this process; survives reloads.")
        fresh.__dict__.update(lock=threading.RLock(), generation=0, reporters={}, running=set())
        found = sys.modules.setdefault(_NAME, fresh)
    return found


def take_over(agent: str, newcomer: Any) -> tuple[int, Any]:
    """Register ``newcomer`` for ``agent``; its generation number and the one it replaces."""
    shared = runtime()
    with shared.lock:
        shared.generation += 1
        before = shared.reporters.get(agent)
        shared.reporters[agent] = newcomer
        return int(shared.generation), before


def resign(agent: str, leaver: Any) -> None:
    shared = runtime()
    with shared.lock:
        if shared.reporters.get(agent) is leaver:
            del shared.reporters[agent]


def live(agent: str) -> Any:
    """The reporter of ``agent`` in this process, whoever made it, or None."""
    return runtime().reporters.get(agent)
