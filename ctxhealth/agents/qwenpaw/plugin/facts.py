"""What an agent says of its window, reserve and trigger. What it does not say stays unknown."""

from __future__ import annotations

from typing import Any

from .blocks import MEDIA_TOKENS, blocks_of, count, field

_RESERVE_SHARE = 0.05
_MOST_RESERVE = 4_096


def manager_of(agent: Any) -> Any:
    """The scroll manager, or None under the native strategy."""
    return getattr(agent, "_context_manager", None)


def window_of(agent: Any) -> int | None:
    size = getattr(getattr(agent, "model", None), "context_size", None)
    return size if isinstance(size, int) and size > 0 else None


def reserve_of(window: int) -> int:
    """What scroll keeps free for the answer before it refuses a prompt."""
    return min(_MOST_RESERVE, max(1, int(window * _RESERVE_SHARE)))


def cap_of(agent: Any) -> int | None:
    """The output cap declared on each request."""
    parameters = getattr(getattr(agent, "model", None), "parameters", None)
    for name in ("max_completion_tokens", "max_tokens"):
        value = getattr(parameters, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def trigger_of(agent: Any) -> float | None:
    """The share of the window above which the agent compacts."""
    ratio = getattr(getattr(agent, "context_config", None), "trigger_ratio", None)
    return float(ratio) if isinstance(ratio, (int, float)) and ratio > 0 else None


def dialect_of(model: Any) -> str:
    """Whose usage the numbers are: Anthropic leaves cached tokens out of the input."""
    names = " ".join(kind.__name__ for kind in _kinds(model)).lower()
    return "anthropic" if "anthropic" in names else "openai"


def _kinds(model: Any) -> list[type]:
    found: list[type] = []
    for _ in range(6):
        if model is None:
            break
        found.append(type(model))
        model = getattr(model, "_inner", None) or getattr(model, "_model", None)
    return found


def facts_of(agent: Any) -> dict[str, Any]:
    """The facts of ``chat.opened`` that the agent states."""
    model = getattr(agent, "model", None)
    name, window = getattr(model, "model", None), window_of(agent)
    scroll = manager_of(agent) is not None
    provider = _provider(getattr(model, "model_key", None))
    ratio = trigger_of(agent)
    facts: dict[str, Any] = {
        "model": name,
        "provider": provider,
        "window": window,
        "max_output": cap_of(agent),
        "tokenizer": "utf-8 bytes / 4",
        "labels": {"strategy": "scroll" if scroll else "native"},
    }
    if ratio is not None:
        facts["trigger"] = {"ratio": ratio, "inclusive": False, "scope": "prompt"}
    if scroll:
        # The chat's own model writes the summaries.
        facts["utility"] = _known({"model": name, "provider": provider, "window": window})
        facts["reserve"] = None if window is None else reserve_of(window)
    return _known(facts)


def _provider(key: Any) -> str | None:
    return key.split(":", 1)[0] or None if isinstance(key, str) and ":" in key else None


def _known(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if value is not None}


def records_of(manager: Any) -> int | None:
    """Evicted spans that the memory message stands for."""
    index = getattr(manager, "_index", None)
    told = getattr(index, "to_dict", None)
    found = told() if callable(told) else None
    return spans_of(found)


def spans_of(index: Any) -> int | None:
    tiers = index.get("tiers") if isinstance(index, dict) else None
    return sum(len(tier) for tier in tiers) if isinstance(tiers, list) else None


def unread_of(manager: Any, context: Any) -> frozenset[str] | None:
    """Calls whose results no answered request has carried yet; None where it is not known."""
    seen = getattr(manager, "_seen_tool_result_ids", None)
    if not isinstance(seen, (set, frozenset)):
        return None
    return frozenset(
        str(field(block, "id"))
        for message in context
        for block in blocks_of(message)
        if field(block, "type") == "tool_result" and str(field(block, "id")) not in seen
    )


def prompt_sizes(messages: list[Any], tools: Any, dumped: Any) -> tuple[int | None, int | None]:
    """Tokens of the system prompt and of the tool schemas. ``dumped``: the schemas as JSON."""
    system = None
    if messages and field(messages[0], "role") == "system":
        system = sum(_size(block) for block in blocks_of(messages[0]))
    return system, count(dumped) if tools else 0


def _size(block: Any) -> int:
    text = field(block, "text")
    return count(str(text)) if text is not None else MEDIA_TOKENS
