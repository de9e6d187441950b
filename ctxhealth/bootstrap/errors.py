"""The one kind of failure a start may end in: a sentence for a person, exit code 2."""

from __future__ import annotations

import errno
from pathlib import Path


class CannotStartError(Exception):
    """Says in one sentence why a command cannot go on and what would help."""


def sentence_for_oserror(error: OSError, path: Path) -> str:
    """The sentence for a file operation on `path` that failed."""
    if error.errno == errno.ENOSPC:
        return f"The disk that holds {path} is full: make room and start again."
    if error.errno == errno.EDQUOT:
        return f"The disk quota for {path} is used up: make room and start again."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"{path} cannot be written by this user: give it write permission, "
            "or start from a folder of your own."
        )
    return f"{path} cannot be used: {error.strerror or error}."
