"""The QwenPaw plugin: ``make`` writes the folder that a user drops into QwenPaw's plugins.

What runs inside QwenPaw lies under ``plugin/``; its modules import QwenPaw only where they are
bound to it (``binding``), so that everything else can be tested without it.
"""

from __future__ import annotations

from pathlib import Path

from ctxhealth.agents.vendoring import lay_out

NAME = "ctxhealth"
_SOURCE = Path(__file__).resolve().parent / "plugin"


def make(dest: Path) -> list[Path]:
    """Write ``dest/ctxhealth``; the files, sorted. Raises CannotMake."""
    return lay_out(_SOURCE, dest, name=NAME, product="qwenpaw")
