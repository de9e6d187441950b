"""The agent products whose sessions are read: where they are kept, and what their agent is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ctxhealth.readers.registry import HEAD_BYTES, sniff

DEFAULT = "claude-code"


def _under(variable: str, home: str, *folders: str) -> Callable[[], Path]:
    """The product's own folder, which ``variable`` may move, and the sessions in it."""

    def find() -> Path:
        moved = os.environ.get(variable)
        base = Path(moved) if moved else Path.home() / home
        return base.joinpath(*folders)

    return find


# The name of a product is that of its format, of its agent and of its runtime.
FOLDERS: dict[str, Callable[[], Path]] = {
    "claude-code": _under("CLAUDE_CONFIG_DIR", ".claude", "projects"),
    "codex": _under("CODEX_HOME", ".codex", "sessions"),
    "pi": _under("PI_CODING_AGENT_DIR", ".pi/agent", "sessions"),
}


def product_of(path: Path) -> str:
    """Whose session a file is; the default where it does not tell (yet)."""
    with open(path, "rb") as file:
        found = sniff(file.read(HEAD_BYTES))
    return found.name if found is not None and found.make is not None else DEFAULT
