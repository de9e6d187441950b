"""The Agent Zero plugin: a folder to drop into ``usr/plugins/``; see docs/agents/agent-zero.md."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from ctxhealth.agents.agent_zero.points import shims
from ctxhealth.agents.vendoring import lay_out

NAME = "ctxhealth"
_PAYLOAD = Path(__file__).parent / "plugin"


def make(dest: Path) -> list[Path]:
    """Write ``dest/ctxhealth``; the files written, sorted. Raises CannotMake."""
    with tempfile.TemporaryDirectory(prefix="ctxhealth-plugin-") as folder:
        source = Path(folder) / NAME
        shutil.copytree(_PAYLOAD, source, ignore=shutil.ignore_patterns("__pycache__"))
        _bind(source)
        for path, text in shims().items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(text, "utf-8")
        return lay_out(source, dest, name=NAME, product="agent-zero")


def _bind(folder: Path) -> None:
    """Let the helpers import the client and the engine that lie beside them."""
    for path in (folder / "helpers").glob("*.py"):
        text = path.read_text("utf-8")
        for room in ("client", "engine"):
            text = text.replace(f"from ctxhealth.{room}", f"from ..vendor.{room}")
        path.write_text(text, "utf-8")
