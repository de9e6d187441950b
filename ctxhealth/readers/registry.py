"""Which reader understands a file: told by its first lines, never by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ctxhealth.readers.base import Reader
from ctxhealth.readers.claude_code import ClaudeCodeReader
from ctxhealth.readers.codex import CodexReader
from ctxhealth.readers.gemini import GeminiReader
from ctxhealth.readers.objects import ObjectParser
from ctxhealth.readers.pi import PiReader

# As much of a file's beginning as is looked at.
HEAD_BYTES = 64 * 1024
_HEAD_LINES = 40


class Format(NamedTuple):
    """``make`` is None for a format that is recognised and not read yet."""

    name: str
    what: str
    fits: Callable[[dict[str, Any]], bool]
    make: Callable[..., Reader] | None


def _is_claude_code(row: dict[str, Any]) -> bool:
    if row.get("type") in ("summary", "file-history-snapshot", "custom-title", "ai-title"):
        return "leafUuid" in row or "messageId" in row or "sessionId" in row
    return isinstance(row.get("sessionId"), str) and row.get("type") in _CLAUDE_CODE_TYPES


_CLAUDE_CODE_TYPES = frozenset(
    {
        "user", "assistant", "system", "attachment", "progress", "queue-operation", "last-prompt",
        "mode", "atis-latch", "api-request", "api-request-shape", "api-request-blob",
        "permission-mode", "pr-link",
    }
)  # fmt: skip


def _is_codex(row: dict[str, Any]) -> bool:
    return "payload" in row and row.get("type") in ("session_meta", "response_item", "turn_context")


def _is_pi(row: dict[str, Any]) -> bool:
    return row.get("type") == "session" and "id" in row and "sessionId" not in row


def _is_opencode(row: dict[str, Any]) -> bool:
    return "session" in row or ("info" in row and "parts" in row)


def _is_gemini(row: dict[str, Any]) -> bool:
    return "sessionId" in row and ("projectHash" in row or "messages" in row)


FORMATS: tuple[Format, ...] = (
    Format("claude-code", "a Claude Code session", _is_claude_code, ClaudeCodeReader),
    Format("codex", "a Codex rollout", _is_codex, CodexReader),
    Format("pi", "a pi session", _is_pi, PiReader),
    Format("opencode", "an opencode export", _is_opencode, None),
    Format("gemini", "a Gemini CLI session", _is_gemini, GeminiReader),
)


def sniff(head: bytes) -> Format | None:
    """The format of a file that begins with ``head``; None where nothing in it is known."""
    parser = ObjectParser(lambda row: True)
    for line in head.split(b"\n")[:_HEAD_LINES]:
        for row in parser.parse(line).rows:
            for format in FORMATS:
                if format.fits(row):
                    return format
    if re.match(rb"\s*\{\s*\n?\s*\"sessionId\"", head) and b'"messages"' in head:
        return next(format for format in FORMATS if format.name == "gemini")
    return _first_object(head)


def _first_object(head: bytes) -> Format | None:
    """A line longer than the head: its first keys may tell already."""
    text = head.decode("utf-8", "replace")
    keys = dict(re.findall(r'"(type|sessionId)"\s*:\s*"([^"]{1,200})"', text))
    if '"payload":{' in text.replace(" ", ""):
        keys["payload"] = ""
    return next((format for format in FORMATS if keys and format.fits(keys)), None)


def readable() -> str:
    """The names of the formats that can be read, for a sentence."""
    return ", ".join(format.what for format in FORMATS if format.make is not None)
