"""What of QwenPaw and its framework this plugin needs, looked for and never guessed.

A part that a version lacks is None and named in ``missing``: what rests on it is reported as
unsupported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

MANAGER = "qwenpaw.agents.context.scroll.manager"
_PARTS = {
    "manager": (MANAGER, "ScrollContextManager"),
    "store": ("qwenpaw.agents.context.scroll.history", "HistoryStore"),
    "unfit": ("qwenpaw.agents.context.types", "ContextWindowUnfitError"),
    "hook": ("qwenpaw.hooks.base", "LifecycleHook"),
    "phase": ("qwenpaw.runtime.phases", "Phase"),
    "result": ("qwenpaw.runtime.hooks", "HookResult"),
    "action": ("qwenpaw.runtime.hooks", "HookAction"),
    "request": ("qwenpaw.schemas", "AgentRequest"),
    "middleware": ("agentscope.middleware", "MiddlewareBase"),
    "message": ("agentscope.message", "Msg"),
    "text": ("agentscope.message", "TextBlock"),
    "tool_result": ("agentscope.message", "ToolResultBlock"),
    "text_start": ("agentscope.event", "TextBlockStartEvent"),
    "text_delta": ("agentscope.event", "TextBlockDeltaEvent"),
    "text_end": ("agentscope.event", "TextBlockEndEvent"),
    "reply_end": ("agentscope.event", "ReplyEndEvent"),
}


@dataclass
class Binding:
    """Classes of the host; None where this version has none."""

    version: str | None = None
    folder: Path | None = None
    missing: list[str] = field(default_factory=list)
    manager: Any = None
    store: Any = None
    unfit: Any = None
    hook: Any = None
    phase: Any = None
    result: Any = None
    action: Any = None
    request: Any = None
    middleware: Any = None
    message: Any = None
    text: Any = None
    tool_result: Any = None
    text_start: Any = None
    text_delta: Any = None
    text_end: Any = None
    reply_end: Any = None

    @property
    def can_talk(self) -> bool:
        """Whether a visible text can be put into a reply."""
        events = (self.text_start, self.text_delta, self.text_end, self.reply_end)
        return all(part is not None for part in (*events, self.message, self.text))


def bind() -> Binding:
    found = Binding()
    for name, (module, attribute) in _PARTS.items():
        part = _part(module, attribute)
        setattr(found, name, part)
        if part is None:
            found.missing.append(f"{module}.{attribute}")
    found.version = _version()
    folder = _part("qwenpaw.constant", "WORKING_DIR")
    found.folder = None if folder is None else Path(folder)
    return found


def _part(module: str, attribute: str) -> Any:
    try:
        return getattr(import_module(module), attribute, None)
    except Exception:
        # Whatever a foreign module raises while it is imported: this version has no such part.
        return None


def _version() -> str | None:
    for attribute in ("__version__", "VERSION"):
        found = _part("qwenpaw.__version__", attribute)
        if isinstance(found, str):
            return found
    return None
