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
#: Settings, and the files by which Agent Zero remembers that a plugin is switched on or off.
_USERS = ("config.json", ".toggle-*")


class CannotMake(Exception):
    """Why the folder was not written, in one sentence."""


def lay_out(
    source: Path, dest: Path, *, name: str, product: str, vendor: str = "vendor"
) -> list[Path]:
    """Write ``source`` as ``dest/name`` with client and engine in its ``vendor`` package.

    A folder that an earlier call made for the same ``product`` is replaced, except for what the
    user set in it; any other is left alone. Returns the files, sorted. Raises CannotMake.
    """
    folder, aside = dest / name, dest / f".{name}.part"
    kept = _kept(folder, product)
    try:
        dest.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(aside, ignore_errors=True)
        shutil.copytree(source, aside, ignore=_LEFT_OUT)
        _vendor(aside / vendor)
        (aside / _MARK).write_text(f"{__version__}\n{product}\n", "utf-8")
        for path in kept:
            shutil.copy2(path, aside / path.name)
        _put(aside, folder)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise CannotMake(f"{folder} cannot be written: {error.strerror or error}") from error
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _put(made: Path, folder: Path) -> None:
    """In place of what is there, which is gone only once the new one stands."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    made.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _kept(folder: Path, product: str) -> list[Path]:
    """What the user set in an earlier folder of ours; refuses a folder that is not ours."""
    if not folder.exists():
        return []
    if not (folder / _MARK).is_file():
        raise CannotMake(f"{folder} is there already and was not made by ctxhealth: move it away")
    _, _, other = (folder / _MARK).read_text("utf-8").strip().partition("\n")
    if other not in ("", product):
        raise CannotMake(f"{folder} is the plugin for {other}, not for {product}: another folder?")
    return [path for pattern in _USERS for path in sorted(folder.glob(pattern)) if path.is_file()]


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
