"""The first sentences: wrong Python, no index, a folder that cannot be written."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bootstrap.conftest import Start, base_python
from tests.bootstrap.wheels import pip_environment
from tests.quality.sources import ROOT

NOBODY = 65534
AS_AN_OLDER_PYTHON = """
import runpy, sys
sys.version_info = (3, 9, 18, "final", 0)
sys.argv = ["manage.py", "up"]
runpy.run_path(%r, run_name="__main__")
"""


def test_an_older_python_is_told_in_one_sentence() -> None:
    script = AS_AN_OLDER_PYTHON % str(ROOT / "manage.py")
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("ctxhealth needs Python 3.11 or newer and this is Python 3.9:")
    assert result.stderr.count("\n") == 1


def test_an_older_python_can_read_manage_py() -> None:
    source = (ROOT / "manage.py").read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 4))
    newer = (ast.JoinedStr, ast.NamedExpr, ast.AnnAssign, ast.AsyncFunctionDef)
    assert not any(isinstance(node, newer) for node in ast.walk(tree))


def test_no_index_is_told_in_one_sentence(start: Start, checkout: Path) -> None:
    environment = pip_environment(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_NO_CACHE_DIR="1")
    result = start("up", environment=environment)
    assert result.returncode == 2
    assert "The package index cannot be reached" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (checkout / ".venv/ctxhealth-installed.json").exists()


@pytest.fixture
def others_folder() -> Iterator[Path]:
    """A folder that everyone can read and only its owner could write, were it not closed."""
    folder = Path(tempfile.mkdtemp(prefix="ctxhealth-closed-"))
    yield folder
    shutil.rmtree(folder)


def python_for_nobody() -> str:
    """An interpreter that a user without rights can start; a counted skip without one."""
    for candidate in (base_python(), "/usr/bin/python3"):
        try:
            subprocess.run(
                [candidate, "-c", "import sys, venv; assert sys.version_info >= (3, 11)"],
                user=NOBODY,
                capture_output=True,
                check=True,
                cwd="/",
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate
    pytest.skip("needs a Python that a user without rights can start")


def test_a_folder_that_cannot_be_written_is_told_in_one_sentence(
    checkout: Path, others_folder: Path
) -> None:
    shutil.copytree(checkout, others_folder, dirs_exist_ok=True)
    root = os.geteuid() == 0
    others_folder.chmod(0o755 if root else 0o555)
    result = subprocess.run(
        [python_for_nobody() if root else base_python(), str(others_folder / "manage.py"), "up"],
        cwd="/",
        env={"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"},
        user=NOBODY if root else None,
        capture_output=True,
        text=True,
        check=False,
    )
    others_folder.chmod(0o755)
    assert result.returncode == 2, result.stderr
    assert "cannot be written by this user" in result.stderr
    assert result.stderr.count("\n") == 1
