"""A plugin's settings."""

from __future__ import annotations

from typing import Any

CONFIG: dict[str, Any] = {}


def get_plugin_config(name: str) -> dict[str, Any]:
    return dict(CONFIG)
