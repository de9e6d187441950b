"""Writing a history so that neither a crash nor a second thought loses the one before."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from ctxhealth.cli.errors import CannotSend
from ctxhealth.engine import History


class Written(NamedTuple):
    """``backup``: where the file that stood there before is now."""

    path: Path
    backup: Path | None = None


def check_output(path: Path, *, force: bool) -> None:
    """Raises CannotSend before anything is planned where ``path`` may not be written."""
    if path.is_dir():
        raise CannotSend(f"{path} is a folder; --output names a file.")
    if path.exists() and not force:
        raise CannotSend(
            f"{path} exists. Give another name, or --force: it is then kept beside as a backup."
        )
    if not path.parent.is_dir():
        raise CannotSend(f"{path} cannot be written: there is no folder {path.parent}.")


def write_history(path: Path, history: History) -> Written:
    """The file that was there is copied first; the new one is synced before it takes the name."""
    try:
        backup = _backup(path) if path.exists() else None
        text = json.dumps(history.to_dict(), ensure_ascii=False, indent=1) + "\n"
        aside = path.with_name(f"{path.name}.part")
        _synced(aside, text.encode("utf-8", "surrogatepass"), os.O_TRUNC)
        os.replace(aside, path)
    except OSError as error:
        raise CannotSend(f"{path} cannot be written: {error.strerror}.") from error
    return Written(path, backup)


def _backup(path: Path) -> Path:
    """A copy under the first free name, never over another backup."""
    raw, number = path.read_bytes(), 1
    while True:
        backup = path.with_name(f"{path.name}.backup-{number}")
        try:
            _synced(backup, raw, os.O_EXCL)
        except FileExistsError:
            number += 1
        else:
            return backup


def _synced(path: Path, raw: bytes, how: int) -> None:
    # A history holds what people wrote: for its owner alone.
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | how, 0o600), "wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
