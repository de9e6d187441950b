"""What the owner of this QwenPaw decides: where to report, what may leave, what is switched on.

Later sources win: the environment, ``config.json`` in the plugin's folder, then the entry
``plugins.ctxhealth`` of QwenPaw's own configuration.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

_ENVIRONMENT = {
    "url": "CTXHEALTH_URL",
    "token": "CTXHEALTH_TOKEN",
    "agent": "CTXHEALTH_AGENT",
    "text": "CTXHEALTH_TEXT",
    "folder": "CTXHEALTH_FOLDER",
    "guard": "CTXHEALTH_GUARD",
    "empty_replies": "CTXHEALTH_EMPTY_REPLIES",
    "summary_latch": "CTXHEALTH_SUMMARY_LATCH",
    "commands": "CTXHEALTH_COMMANDS",
}
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
TEXTS = ("none", "excerpt", "full")


@dataclass(frozen=True)
class Settings:
    """``folder`` holds outbox and backups. ``guard``, ``empty_replies`` and ``summary_latch``
    change what the agent does and are off unless switched on; ``commands`` off means that
    operators see but cannot press."""

    url: str | None = None
    token: str | None = None
    agent: str = "qwenpaw"
    text: str = "excerpt"
    folder: str | None = None
    guard: bool = False
    empty_replies: bool = False
    summary_latch: bool = False
    commands: bool = True


def read_settings(
    given: Mapping[str, Any], folder: Path, environ: Mapping[str, str] | None = None
) -> tuple[Settings, list[str]]:
    """The settings, and a sentence for each value that was not taken. Never raises."""
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {"agent": f"qwenpaw@{socket.gethostname()}"}
    troubles: list[str] = []
    known = {field.name for field in fields(Settings)}
    sources = (
        ("the environment", {k: environ[v] for k, v in _ENVIRONMENT.items() if environ.get(v)}),
        ("config.json", _file(folder / "config.json", troubles)),
        ("plugins.ctxhealth", given),
    )
    for source, found in sources:
        for name, value in found.items():
            if name not in known:
                troubles.append(f"{source}: {name} is no setting of ctxhealth")
                continue
            try:
                values[name] = _value(name, value)
            except ValueError as error:
                troubles.append(f"{source}: {name}: {error}")
    return Settings(**values), troubles


def _file(path: Path, troubles: list[str]) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        troubles.append(f"config.json cannot be read: {error}")
        return {}
    if not isinstance(found, dict):
        troubles.append("config.json: must be an object")
        return {}
    return found


def _value(name: str, value: Any) -> Any:
    if isinstance(getattr(Settings, name), bool):
        return _flag(value)
    if value is None and name in ("url", "token", "folder"):
        return None
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be a text, not {value!r}")
    if name == "text" and value not in TEXTS:
        raise ValueError(f"{value!r} is not one of {', '.join(TEXTS)}")
    return value.strip()


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"{value!r} is neither true nor false")
