"""Paths below the stand-in's own folder."""

from __future__ import annotations

from pathlib import Path

BASE = Path()


def get_base_dir() -> str:
    return str(BASE)


def get_abs_path(*parts: str) -> str:
    return str(BASE.joinpath(*parts))
