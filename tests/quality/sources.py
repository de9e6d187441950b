"""The project's own files, as git would list them, for tests that read source."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "ctxhealth"
_HIDDEN = {".venv", ".git", "var", "node_modules", "__pycache__", ".hypothesis", "staticfiles"}


@cache
def project_files() -> tuple[Path, ...]:
    """Tracked and new files without ignored ones; every file where git is not there."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        output = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return tuple(sorted(_walk(ROOT)))
    names = {name for name in output.decode().split("\0") if name}
    return tuple(sorted(path for name in names if (path := ROOT / name).is_file()))


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and path.name not in _HIDDEN and not path.name.endswith("_cache"):
            yield from _walk(path)
        elif path.is_file():
            yield path


def python_files(*rooms: str) -> list[Path]:
    """Python files under the given rooms of the package; all of the package without any."""
    folders = [PACKAGE / room for room in rooms] or [PACKAGE]
    return [
        path
        for path in project_files()
        if path.suffix == ".py" and any(path.is_relative_to(folder) for folder in folders)
    ]


@cache
def tree(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def relative(path: Path) -> str:
    """As a reader of the repository names it."""
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, absolute module) of every import, those within functions too."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield node.lineno, ".".join([*base, *([node.module] if node.module else [])])
