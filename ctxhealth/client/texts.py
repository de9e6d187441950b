"""What of a text may leave the process: nothing, an excerpt, or all of it; always redacted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .limits import EXCERPT_CHARS, SENTENCE_CHARS, TEXT_CHARS
from .redact import redact

TEXT_MODES = ("none", "excerpt", "full")
# Read a little beyond the cut, so that a secret standing across it is recognised whole.
_MARGIN = 512
_GROUPS = ("bulks", "topics")
_CONTENT = ("text", "excerpt", "title")
_TOUCHED = frozenset((*_GROUPS, *_CONTENT))
Redactor = Callable[[str], str]


class TextPolicy:
    """Applies the owner's choice of ``mode`` and the owner's own ``extra`` redactor."""

    def __init__(self, mode: str = "excerpt", extra: Redactor | None = None) -> None:
        if mode not in TEXT_MODES:
            raise ValueError(f"text: {mode!r} is not one of {', '.join(TEXT_MODES)}")
        self.mode = mode
        self.extra = extra

    def apply(self, kind: str, fields: dict[str, Any]) -> None:
        """Reduce the text fields of one event in place, and those of its bulks and topics.

        The text of a note is the agent's own word, not a chat's content.
        """
        if self.extra is None and _TOUCHED.isdisjoint(fields):
            return
        if kind == "note":
            fields["text"] = cut(redact(as_text(fields.get("text", ""))), SENTENCE_CHARS)
        elif self.mode == "none":
            _strip(fields)
        else:
            self._shorten(fields)
        if self.extra is not None:
            for key in ("title", "excerpt", "text", "detail", "reason", "error"):
                if isinstance(fields.get(key), str):
                    fields[key] = self._own(fields[key])

    def _shorten(self, fields: dict[str, Any]) -> None:
        if "text" in fields:
            text = as_text(fields.pop("text"))
            fields.setdefault("excerpt", text)
            if self.mode == "full":
                fields["text"] = cut(redact(text[: TEXT_CHARS + _MARGIN]), TEXT_CHARS)
        _excerpt(fields, ("excerpt",))
        for group in _GROUPS:
            if isinstance(fields.get(group), (list, tuple)):
                fields[group] = [_entry(entry) for entry in fields[group]]

    def _own(self, text: str) -> str:
        assert self.extra is not None
        try:
            return str(self.extra(text))
        except Exception:
            # A redactor that fails must not become a leak, nor an error in the host.
            return "[redaction failed]"


def as_text(value: Any) -> str:
    """A text in whatever form a host hands it in: content parts as lists, bytes, anything."""
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    except Exception:
        return f"[{type(value).__name__}]"


def excerpt(text: str) -> str:
    """The first 400 characters, redacted before the cut."""
    return redact(text[: EXCERPT_CHARS + _MARGIN])[:EXCERPT_CHARS]


def cut(text: str, limit: int) -> str:
    """``text`` within ``limit`` characters, head and tail around a mark that says how much went."""
    if len(text) <= limit:
        return text
    mark = f"\n[... {len(text) - limit} characters and more cut ...]\n"
    head = (limit - len(mark)) * 6 // 10
    tail = limit - len(mark) - head
    return text[:head] + mark + text[len(text) - tail :]


def _strip(fields: dict[str, Any]) -> None:
    for key in _CONTENT:
        fields.pop(key, None)
    for group in _GROUPS:
        if isinstance(fields.get(group), (list, tuple)):
            fields[group] = [
                {key: value for key, value in entry.items() if key not in _CONTENT}
                for entry in fields[group]
                if isinstance(entry, Mapping)
            ]


def _entry(entry: Any) -> Any:
    if not isinstance(entry, Mapping) or not ("excerpt" in entry or "title" in entry):
        return entry
    short = dict(entry)
    _excerpt(short, ("excerpt", "title"))
    return short


def _excerpt(fields: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        if fields.get(key) is not None:
            fields[key] = excerpt(as_text(fields[key]))
