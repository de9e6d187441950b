"""The engine can be vendored: standard library alone, relative imports, no clock, no randomness."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ctxhealth.engine as engine

ROOM = Path(engine.__file__).parent
FILES = sorted(ROOM.glob("*.py"))
FORBIDDEN = {"time", "datetime", "random", "secrets", "uuid", "os", "socket", "threading"}


def _imports(path: Path) -> list[tuple[str, int]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, 0) for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            found.append((node.module or "", node.level))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_imports_the_standard_library_and_its_own_room(path: Path) -> None:
    for name, level in _imports(path):
        top = name.split(".")[0]
        assert level == 1 or (level == 0 and top in sys.stdlib_module_names), name
        assert top not in FORBIDDEN, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_valid_for_python_3_10(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))


def test_the_folder_works_when_it_is_copied_into_another_package(tmp_path: Path) -> None:
    package = tmp_path / "plugin"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copytree(ROOM, package / "vendored", ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "import sys\n"
        "from plugin.vendored import History, plan_fallback\n"
        "assert plan_fallback(History(), target=1).outcome == 'not_needed'\n"
        "assert not [name for name in sys.modules if name.startswith(('ctxhealth', 'django'))]\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-B", "-c", script], check=True, cwd=tmp_path, env=env)


def test_everything_public_is_named() -> None:
    assert list(engine.__all__) == sorted(
        engine.__all__, key=lambda name: (not name[0].isupper(), name)
    )
    for name in engine.__all__:
        assert getattr(engine, name).__doc__ or name in {
            "Cause", "EmptyCause", "FallbackOutcome", "Flag", "LatchKind", "Outcome", "Scope"
        }  # fmt: skip
