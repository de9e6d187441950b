"""Which models, and how large they are."""

from __future__ import annotations

from typing import Any

CHAT: dict[str, Any] = {
    "provider": "other", "name": "fake-chat", "ctx_length": 20_000, "ctx_history": 0.28,
}  # fmt: skip
UTILITY: dict[str, Any] = {"provider": "other", "name": "fake-utility", "ctx_length": 128_000}


def get_chat_model_config(agent: Any = None) -> dict[str, Any]:
    return CHAT


def get_utility_model_config(agent: Any = None) -> dict[str, Any]:
    return UTILITY
