"""What an agent was before a command changed it: on the disk first, and the way back."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

FORMAT = "ctxhealth-qwenpaw-state"
VERSION = 1


class NoBackup(Exception):
    """There is none, or it cannot be used; one sentence."""


def path_of(folder: Path, chat: str, command: str) -> Path:
    return folder / _name(chat) / f"{_name(command)}.json"


def save(folder: Path, chat: str, command: str, state: Mapping[str, Any], at_ms: int) -> str:
    """Written aside, synced, then named. Raises OSError, with nothing changed."""
    path = path_of(folder, chat, command)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    document = {
        "format": FORMAT, "version": VERSION, "chat": chat, "command": command, "at_ms": at_ms,
        "state": state,
    }  # fmt: skip
    with open(os.open(aside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)
    return str(path)


def load(folder: Path, chat: str, command: str) -> dict[str, Any]:
    """The agent's state as ``save`` was given it. Raises NoBackup."""
    path = path_of(folder, chat, command)
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise NoBackup(f"there is no backup of command {command}") from error
    except (OSError, ValueError) as error:
        raise NoBackup(f"the backup of command {command} cannot be read: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise NoBackup(f"the backup of command {command} is none of a QwenPaw chat")
    if found.get("version") != VERSION or found.get("chat") != chat:
        raise NoBackup(f"the backup of command {command} is of another version or chat")
    state = found.get("state")
    if not isinstance(state, dict):
        raise NoBackup(f"the backup of command {command} holds no state")
    return state


def _name(id: str) -> str:
    """A file name that no id can make point elsewhere, and that keeps two ids apart."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", id)[:60]
    if plain == id:
        return plain
    return f"{plain}-{blake2b(id.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"
