"""The folder where files wait to be read. Names are random, modes are private."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from django.conf import settings


class Spool:
    """Files are written by the upload, read once by the worker and removed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self) -> tuple[str, BinaryIO]:
        """A new, empty file and its name. Raises OSError where the disk takes none."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = secrets.token_hex(16)
        number = os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        return name, os.fdopen(number, "wb")

    def path(self, name: str) -> Path:
        return self.folder / name

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()

    def remove(self, name: str) -> None:
        if name:
            with suppress(FileNotFoundError):
                self.path(name).unlink()


def spool() -> Spool:
    """This installation's, in its data folder."""
    return Spool(Path(settings.CTXHEALTH_DATA_DIR) / "imports")
