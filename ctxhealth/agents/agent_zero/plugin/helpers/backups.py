"""The history saved beside chat.json before a command changes it, and the way back."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

from . import host

FORMAT = "ctxhealth-agent-zero"
VERSION = 1
_FOLDER = "backups"


class Unreadable(Exception):
    """Why there is no way back, in one sentence."""


def save(agent: Any, command: str, at_ms: int) -> str:
    """Write the agent's whole history, synced, and a copy of chat.json beside it.

    Returns the path as people see it, below the agent's own folder. Raises OSError: then nothing
    may be changed.
    """
    folder = _folder(agent.context.id)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"ctxhealth-{_name(command)}.json"
    document = {
        "format": FORMAT,
        "version": VERSION,
        "command": command,
        "at_ms": at_ms,
        "chat": host.chat_of(agent),
        "history": agent.history.to_dict(),
    }
    _write(path, json.dumps(document, ensure_ascii=False, default=str))
    stored = folder.parent / "chat.json"
    if stored.is_file():
        with contextlib.suppress(OSError):
            shutil.copyfile(stored, path.with_suffix(".chat.json"))
    return _shown(path)


def load(agent: Any, command: str) -> Any:
    """The History saved before ``command``, as a new object of the agent's. Raises Unreadable."""
    path = _folder(agent.context.id) / f"ctxhealth-{_name(command)}.json"
    try:
        document = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise Unreadable(f"there is no backup of command {command}") from error
    except (OSError, ValueError) as error:
        raise Unreadable(f"the backup cannot be read: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise Unreadable("the backup is not one of this plugin")
    if document.get("chat") != host.chat_of(agent):
        raise Unreadable(f"the backup is of chat {document.get('chat')}")
    return _read(agent, document["history"])


def _read(agent: Any, saved: Any) -> Any:
    module = sys.modules[type(agent.history).__module__]
    try:
        return module.deserialize_history(json.dumps(saved, ensure_ascii=False), agent)
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"the backup's history is damaged: {error}") from error


def _folder(context: str) -> Path:
    """Beside chat.json, in the agent's own chats folder."""
    chats = host.attribute("helpers.persist_chat", "get_chat_folder_path")
    base = Path(chats(context)) if chats else Path("usr/chats") / _name(context)
    return base / _FOLDER


def _write(path: Path, text: str) -> None:
    """On the disk for good: written aside, synced, then named."""
    aside = path.with_suffix(".part")
    flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY
    with open(os.open(aside, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def _shown(path: Path) -> str:
    base = host.attribute("helpers.files", "get_base_dir")
    try:
        return str(path.relative_to(base())) if base else str(path)
    except ValueError:
        return str(path)


def _name(id: str) -> str:
    """A file name that no id can make point elsewhere, and that keeps two ids apart."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", id)[:60]
    if plain == id:
        return plain
    return f"{plain}-{blake2b(id.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"
