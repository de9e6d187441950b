"""Makes a plugin folder: the integration's own files with the SDK and the engine beside them.

The agent's environment then needs nothing of ours installed. Client and engine import each other
relatively and nothing else of the project, so they work under whatever name the agent gives them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from ctxhealth import __version__

_PACKAGE = Path(__file__).resolve().parents[1]
_ROOMS = ("client", "engine")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".DS_Store")
_MARK = ".ctxhealth-plugin"


class CannotMake(Exception):
    """Why the folder was not written, in one sentence."""


def lay_out(source: Path, dest: Path, *, name: str, vendor: str = "vendor") -> list[Path]:
    """Write ``source`` as ``dest/name`` with client and engine in its ``vendor`` package.

    A folder that an earlier call made is replaced, except for its ``config.json``; any other is
    left alone. Returns the files, sorted. Raises CannotMake.
    """
    folder = dest / name
    kept = _kept(folder)
    aside = dest / f".{name}.part"
    try:
        dest.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(aside, ignore_errors=True)
        shutil.copytree(source, aside, ignore=_LEFT_OUT)
        _vendor(aside / vendor)
        (aside / _MARK).write_text(f"{__version__}\n", "utf-8")
        for path, content in kept.items():
            (aside / path).write_bytes(content)
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
    except OSError as error:
        raise CannotMake(f"{folder} cannot be written: {error.strerror or error}") from error
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _kept(folder: Path) -> dict[str, bytes]:
    """What the user set in an earlier folder of ours; refuses a folder that is not ours."""
    if not folder.exists():
        return {}
    if not (folder / _MARK).is_file():
        raise CannotMake(f"{folder} is there already and was not made by ctxhealth: move it away")
    return {
        name: (folder / name).read_bytes() for name in ("config.json",) if (folder / name).is_file()
    }


def _vendor(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(
        f'"""ctxhealth {__version__}: the SDK and the engine, as published."""\n', "utf-8"
    )
    for room in _ROOMS:
        shutil.copytree(_PACKAGE / room, folder / room, ignore=_LEFT_OUT)


def described(paths: Iterable[Path], folder: Path) -> str:
    """One line for people: how many files, how large."""
    files = list(paths)
    size = sum(path.stat().st_size for path in files)
    return f"{folder}: {len(files)} files, {size // 1024} kB"
