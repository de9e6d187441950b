"""Format, lint, types, walls and template style, as one command each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.quality.sources import ROOT, project_files

SCRIPTS = Path(sys.executable).parent


def run(*command: str | Path) -> None:
    """Fail with the command's own words."""
    result = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"


def test_ruff_finds_nothing() -> None:
    run(SCRIPTS / "ruff", "check", "--quiet", ".")


def test_ruff_would_format_nothing() -> None:
    run(SCRIPTS / "ruff", "format", "--check", "--quiet", ".")


@pytest.mark.timeout(600)
def test_types_are_strict_and_whole() -> None:
    run(SCRIPTS / "mypy", "--strict", "ctxhealth")


def test_rooms_import_only_what_the_layout_allows() -> None:
    run(SCRIPTS / "lint-imports", "--no-cache")


def test_templates_are_in_djades_style() -> None:
    templates = [path for path in project_files() if path.suffix == ".html"]
    assert templates, "the pages have no templates"
    run(SCRIPTS / "djade", "--check", "--target-version", "5.2", *templates)
