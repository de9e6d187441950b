"""Where a runtime host of this user says how it is reached: ``registration.json``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

_SERVICE = "service"


class Place(NamedTuple):
    """``ephemeral``: the host ends by itself once its last client is gone."""

    address: str
    ephemeral: bool


def find(folder: Path | None = None) -> Place | None:
    """The newest host registered; None where there is none."""
    folder = folder or _home()
    newest: tuple[float, Place] | None = None
    for path in folder.glob("*/registration.json"):
        place = _read(path)
        if place is not None:
            newest = max(newest or (0.0, place), (path.stat().st_mtime, place))
    return newest[1] if newest else None


def _read(path: Path) -> Place | None:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    endpoint = found.get("endpoint") if isinstance(found, dict) else None
    if not isinstance(endpoint, str) or not endpoint:
        return None
    return Place(f"unix:{endpoint}", found.get("lifecycleMode") != _SERVICE)


def _home() -> Path:
    """By the account's home, as Maka does, whatever HOME says."""
    import pwd  # Not on every system, and needed for the local socket alone.

    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "Maka" / "runtime-hosts"
    return home / ".cache" / "maka" / "runtime-hosts"
