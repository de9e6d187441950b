"""What the server is told of a chat itself: names, window, limit, models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import host

_CONFIG = "plugins._model_config.helpers.model_config"
_TITLE = 200


def facts_of(agent: Any) -> dict[str, Any]:
    """Facts for ``reporter.chat``; what this agent does not tell is left out (unknown)."""
    context = agent.context
    chat = _config("get_chat_model_config", agent)
    utility = _config("get_utility_model_config", agent)
    limit = host.limit_of(agent.history)
    facts: dict[str, Any] = {
        "title": _title(context, agent),
        "parent": context.id if getattr(agent, "number", 0) else None,
        "model": chat.get("name") or None,
        "provider": chat.get("provider") or None,
        "window": whole(chat.get("ctx_length")),
        "history_limit": limit,
        "tokenizer": "cl100k_base x 1.1",
        "utility": _utility(utility),
        "labels": _labels(context, agent),
    }
    if limit is not None:
        facts["trigger"] = {"tokens": limit, "inclusive": False, "scope": "history"}
    return {key: value for key, value in facts.items() if value is not None}


def _config(name: str, agent: Any) -> Mapping[str, Any]:
    read = host.attribute(_CONFIG, name)
    found = read(agent) if read else None
    return found if isinstance(found, Mapping) else {}


def _utility(config: Mapping[str, Any]) -> dict[str, Any] | None:
    told = {
        "model": config.get("name") or None,
        "provider": config.get("provider") or None,
        "window": whole(config.get("ctx_length")),
    }
    known = {key: value for key, value in told.items() if value is not None}
    return known or None


def _title(context: Any, agent: Any) -> str | None:
    name = str(getattr(context, "name", None) or "")[:_TITLE]
    number = getattr(agent, "number", 0)
    return (f"{name} (A{number})" if number else name) or None


def _labels(context: Any, agent: Any) -> dict[str, str]:
    kind = getattr(context, "type", None)
    profile = getattr(agent.config, "profile", None)
    labels = {"kind": str(getattr(kind, "value", kind) or ""), "profile": str(profile or "")}
    return {key: value for key, value in labels.items() if value}


def whole(value: Any) -> int | None:
    """A count out of a setting, which may be a text; None where it is none."""
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    return number if number > 0 else None
