"""System checks that refuse a way of serving in which something promised does not hold.

The store has its own for SQLite and for more than one worker.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

MIN_SECRET_CHARS = 32
IN_MEMORY_LAYER = "channels.layers.InMemoryChannelLayer"


@register(Tags.security)
def check_hosts_are_named(**kwargs: Any) -> list[CheckMessage]:
    """With ``*`` any name that resolves here reads the pages (DNS rebinding)."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Error(
            "CTXHEALTH_HOSTS contains '*': pages and sockets would answer to any host name.",
            hint="Name the hosts, comma-separated.",
            id="ops.E001",
        )
    ]


@register(Tags.security)
def check_origins_are_exact(**kwargs: Any) -> list[CheckMessage]:
    wild = [origin for origin in settings.CSRF_TRUSTED_ORIGINS if "*" in origin]
    if not wild:
        return []
    return [
        Error(
            f"CTXHEALTH_ORIGINS contains {wild[0]!r}, which is not one exact origin.",
            hint="Write each origin in full, such as https://ctxhealth.example.org.",
            id="ops.E002",
        )
    ]


@register(Tags.security)
def check_secret_key(**kwargs: Any) -> list[CheckMessage]:
    if len(settings.SECRET_KEY) >= MIN_SECRET_CHARS:
        return []
    return [
        Error(
            f"SECRET_KEY has fewer than {MIN_SECRET_CHARS} characters; it signs every session.",
            hint="Leave it empty to have one made and kept in the data folder.",
            id="ops.E003",
        )
    ]


@register(Tags.compatibility)
def check_layer_reaches_every_worker(**kwargs: Any) -> list[CheckMessage]:
    """Hints in one process's memory never reach the pages of another."""
    backend = settings.CHANNEL_LAYERS["default"]["BACKEND"]
    if int(settings.CTXHEALTH_WORKERS) <= 1 or backend != IN_MEMORY_LAYER:
        return []
    return [
        Error(
            "Several workers need a channel layer that they share.",
            hint="Set REDIS_URL, or CTXHEALTH_WORKERS=1.",
            id="ops.E004",
        )
    ]


@register(Tags.files)
def check_data_folder(**kwargs: Any) -> list[CheckMessage]:
    """The folder holds the secret key and, on SQLite, every event."""
    folder = Path(settings.CTXHEALTH_DATA_DIR)
    if not folder.exists():
        return []
    if not _writable(folder):
        return [Error(f"The data folder {folder.name!r} cannot be written.", id="ops.E005")]
    if os.name == "posix" and folder.stat().st_mode & 0o007:
        return [
            Warning(
                f"Anybody on this machine can enter the data folder {folder.name!r}.",
                hint="chmod 700 on it.",
                id="ops.W001",
            )
        ]
    return []


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
