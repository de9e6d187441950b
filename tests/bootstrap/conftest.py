"""A checkout of its own for each test, and a way to start it as a user would."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.quality.sources import PACKAGE, ROOT

Start = Callable[..., subprocess.CompletedProcess[str]]


def base_python() -> str:
    """The interpreter beneath this test's environment: what `python3` is on a fresh machine."""
    return str(getattr(sys, "_base_executable", sys.executable))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a start needs before anything is installed."""
    root = tmp_path / "checkout"
    (root / "ctxhealth").mkdir(parents=True)
    for name in ("manage.py", "requirements.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, root / name)
    shutil.copy(PACKAGE / "__init__.py", root / "ctxhealth")
    shutil.copytree(PACKAGE / "bootstrap", root / "ctxhealth" / "bootstrap")
    return root


@pytest.fixture
def start(checkout: Path) -> Start:
    """`start("up", environment=...)` runs manage.py of the checkout to its end."""

    def run(*args: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [base_python(), str(checkout / "manage.py"), *args],
            cwd=checkout,
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes; a counted skip where this user may not mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    try:
        subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a small file system: this user may not mount one")
    yield folder
    subprocess.run(["umount", str(folder)], capture_output=True, check=False)
