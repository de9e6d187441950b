"""The data folder: private to its owner, with the secret key that signs sessions."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ctxhealth.bootstrap.errors import CannotStartError, sentence_for_oserror

_KEY_BYTES = 50


def prepare(data_dir: Path) -> Path:
    """Make `data_dir` with mode 0700; raises CannotStartError where it cannot be written."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = data_dir / f".probe-{os.getpid()}"
        probe.touch(mode=0o600)
        probe.unlink()
    except OSError as error:
        raise CannotStartError(sentence_for_oserror(error, data_dir)) from error
    return data_dir


def secret_key(data_dir: Path) -> str:
    """The key kept in `data_dir`, made on first use.

    Two processes that start at once agree: the file appears whole, by a hard link.
    """
    path = data_dir / "secret.key"
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise CannotStartError(sentence_for_oserror(error, path)) from error
    prepare(data_dir)
    return _create_key(path)


def _create_key(path: Path) -> str:
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(_KEY_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was first; its key counts
        finally:
            draft.unlink()
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise CannotStartError(sentence_for_oserror(error, path)) from error
