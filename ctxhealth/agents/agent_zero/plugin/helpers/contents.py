"""What a message of Agent Zero is: who speaks, what kind it is, what text the model is sent.

The agent's protocol is JSON in plain text: a reply asks for one tool by its name, and what enters
the history next is that tool's result (or a warning in its place).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TOOL = re.compile(r'"tool_name"\s*:\s*"([^"]{1,200})"')
#: The tool by which an agent answers the user: it ends the turn and has no result.
_ANSWER = "response"
_TRIMMED = 400


@dataclass(frozen=True)
class Content:
    """``asks``: the tool that this reply calls. ``user``: a person's own words, to be shown."""

    role: str
    kind: str
    text: str
    name: str | None = None
    asks: str | None = None
    warning: str | None = None
    user: str | None = None


def content_of(message: Any) -> Content:
    """Of a Message object, by its present content: the summary where there is one."""
    summary = str(getattr(message, "summary", "") or "")
    raw = message.content
    if message.ai:
        return _reply(summary or text_of(raw))
    if is_raw(raw):
        return Content("user", "text" if summary else "image", summary or text_of(raw))
    return _told(raw, summary or text_of(raw))


def text_of(raw: Any) -> str:
    """As the model is sent it; of an embedded picture only its preview."""
    if isinstance(raw, str):
        return raw
    if is_raw(raw):
        return str(raw.get("preview") or json.dumps(raw, ensure_ascii=False)[:_TRIMMED])
    return json.dumps(raw, ensure_ascii=False, default=str)


def is_raw(raw: Any) -> bool:
    return isinstance(raw, Mapping) and "raw_content" in raw


def _reply(text: str) -> Content:
    found = _TOOL.search(text)
    tool = found.group(1) if found else None
    if tool is None or tool.partition(":")[0] == _ANSWER:
        return Content("assistant", "text", text)
    return Content("assistant", "tool_call", text, name=tool, asks=tool)


def _told(raw: Any, text: str) -> Content:
    if not isinstance(raw, Mapping):
        return Content("user", "text", text)
    if "tool_result" in raw:
        return Content("tool", "tool_result", text, name=str(raw.get("tool_name") or "") or None)
    if "system_warning" in raw:
        return Content("system", "text", text, warning=text_of(raw["system_warning"]))
    if "messages_summary" in raw:
        return Content("system", "summary", text)
    for key in ("user_message", "user_intervention"):
        if key in raw:
            return Content("user", "text", text, user=text_of(raw[key]))
    return Content("user", "data", text)
