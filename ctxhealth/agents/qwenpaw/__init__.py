"""To be written."""

from __future__ import annotations

from pathlib import Path


def make(dest: Path) -> list[Path]:
    raise NotImplementedError
