"""Advisory locks between processes; the system releases them when the holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def folder_lock(folder: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold `folder` for this process; calls `on_wait` once where another one holds it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class FileLock:
    """An exclusive lock on a file that names its holder, kept until the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def acquire(self) -> bool:
        """Take the lock and write this process's id into the file; False where it is held."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        self._handle = handle
        return True

    def release(self) -> None:
        """Give the lock back; nothing happens where it was not taken."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def holder(self) -> str:
        """The process id the holder wrote, or "unknown"."""
        try:
            return self.path.read_text(encoding="ascii").strip() or "unknown"
        except (OSError, UnicodeDecodeError):
            return "unknown"
