"""The plugin's settings, as its page or the environment gives them."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import host

NAME = "ctxhealth"
_TEXTS = ("none", "excerpt", "full")


class BadSettings(ValueError):
    """Which setting is wrong, and why."""


@dataclass(frozen=True)
class Settings:
    """Without ``url`` or ``token`` nothing is sent and nothing is patched."""

    enabled: bool = True
    url: str = ""
    token: str = ""
    agent: str = ""
    text: str = "excerpt"
    commands: bool = True

    @property
    def is_on(self) -> bool:
        return bool(self.enabled and self.url and self.token)


def read(given: Mapping[str, Any] | None = None) -> Settings:
    """From what the page gave, else from what is stored. Raises BadSettings naming the field."""
    if given is None:
        load = host.attribute("helpers.plugins", "get_plugin_config")
        found = load(NAME) if load else None
        given = found if isinstance(found, Mapping) else {}
    text = _word(given, "text", "excerpt")
    if text not in _TEXTS:
        raise BadSettings(f"text: {text!r} is not one of {', '.join(_TEXTS)}")
    url = _word(given, "url", os.environ.get("CTXHEALTH_URL", ""))
    if url and not url.startswith(("http://", "https://", "ws://", "wss://")):
        raise BadSettings(f"url: {url!r} must begin with http:// or https://")
    return Settings(
        enabled=_flag(given, "enabled"),
        url=url,
        token=_word(given, "token", os.environ.get("CTXHEALTH_TOKEN", "")),
        agent=_word(given, "agent", f"agent-zero {socket.gethostname()}"),
        text=text,
        commands=_flag(given, "commands"),
    )


def _word(given: Mapping[str, Any], name: str, default: str) -> str:
    value = given.get(name)
    return str(value).strip() if value is not None and str(value).strip() else default


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name, True)
    if isinstance(value, str):
        return value.strip().lower() not in ("", "0", "false", "no", "off")
    return bool(value)
