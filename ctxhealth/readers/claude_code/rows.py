"""Reading Claude Code's rows, whose format is internal and changes."""

from __future__ import annotations

from ctxhealth.readers.values import Row, count_at, dict_at, list_at, text_at


def is_row(value: Row) -> bool:
    """A line's own object: those nested in it name no session."""
    return isinstance(value.get("type"), str) and isinstance(value.get("sessionId"), str)


def content_blocks(row: Row) -> list[Row]:
    """The message's content as blocks; plain text is one text block."""
    content = dict_at(row, "message").get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [block if isinstance(block, dict) else {"type": "text", "text": str(block)}
                for block in content]  # fmt: skip
    return []


def plain_text(row: Row) -> str:
    """All the text of a message, for the short rows that are told apart by what they say."""
    parts = [block["text"] for block in content_blocks(row) if isinstance(block.get("text"), str)]
    return parts[0] if len(parts) == 1 else "\n".join(parts)


def load_of(usage: Row) -> int | None:
    """Prompt tokens of an Anthropic usage; None where it reports none."""
    parts = [count_at(usage, key) for key in _INPUTS]
    known = [part for part in parts if part is not None]
    return sum(known) if any(known) else None


_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def wire_usage(usage: Row) -> Row | None:
    """The wire's usage; None where every count is 0 or missing (no reading, never a load of 0)."""
    if load_of(usage) is None:
        return None
    found: Row = {
        "dialect": "anthropic",
        "input": count_at(usage, "input_tokens"),
        "output": count_at(usage, "output_tokens"),
        "cache_read": count_at(usage, "cache_read_input_tokens"),
        "cache_write": count_at(usage, "cache_creation_input_tokens"),
        "reasoning": count_at(dict_at(usage, "output_tokens_details"), "thinking_tokens"),
    }
    passes = [_pass(entry) for entry in list_at(usage, "iterations") if isinstance(entry, dict)]
    if passes:
        found["iterations"] = passes[-20:]
    return {key: value for key, value in found.items() if value is not None}


def _pass(entry: Row) -> Row:
    found = {
        "type": (text_at(entry, "type") or "message")[:200],
        "input": count_at(entry, "input_tokens") or 0,
        "output": count_at(entry, "output_tokens"),
        "cache_read": count_at(entry, "cache_read_input_tokens") or 0,
        "cache_write": count_at(entry, "cache_creation_input_tokens") or 0,
    }
    return {key: value for key, value in found.items() if value is not None}
