"""Making a text or an item smaller, and saying how much was cut."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from .history import Bulk, Item

#: Nothing is cut below this; a marker and a few words need about as much.
LEAST_TOKENS = 64
#: Sizes used where texts are unknown: a pointer, one evicted-line, 4 characters a token.
POINTER_TOKENS = 24
CHARS_PER_TOKEN = 4
NO_CONTENT = "(no content)"
_POINTER = "[removed by fallback compaction:"
_LONGEST_POINTER = 300
_TRIES = 6

#: Parts whose text a provider signs: shortened they would be refused.
SIGNED_KINDS = frozenset({"reasoning"})


class Sizer:
    """Counts tokens with the agent's own counter, else by the density of what is being cut."""

    def __init__(self, count: Callable[[str], int] | None) -> None:
        self._count = count

    def size(self, text: str, tokens: int, chars: int) -> int:
        """Return the tokens of ``text``, a part of something with ``tokens`` in ``chars``."""
        if self._count is not None:
            return self._count(text)
        return math.ceil(len(text) * density(tokens, chars))


def density(tokens: int, chars: int) -> float:
    """Return tokens per character; a quarter where that is unknown or cannot be true."""
    ratio = tokens / chars if chars > 0 else 0.0
    return ratio if 0.05 < ratio < 2 else 1 / CHARS_PER_TOKEN


def head_tail(text: str, limit: int, head_share: float) -> str | None:
    """Keep the head and the tail of a text in ``limit`` characters, marker included.

    Returns the text itself where it fits, ``None`` where not even the marker fits.
    """
    if len(text) <= limit:
        return text
    room = limit - len(_cut_marker(len(text), len(text)))
    if room < 0:
        return None
    head = int(room * head_share)
    tail = room - head
    marker = _cut_marker(len(text) - room, len(text))
    return text[:head] + marker + (text[-tail:] if tail else "")


def _cut_marker(cut: int, whole: int) -> str:
    return f"\n[... {cut:,} of {whole:,} characters cut by fallback compaction ...]\n"


def cut_item(item: Item, limit: int, sizer: Sizer, head_share: float) -> Item | None:
    """Return the item in at most ``limit`` tokens, or ``None`` where that would not shrink it."""
    if limit >= item.tokens:
        return None
    if item.kind == "image":
        return point_to(item, sizer)
    if item.text is None:
        return replace(item, tokens=limit, chars=None) if limit >= LEAST_TOKENS else None
    fitted = _fit(item.text, item.tokens, limit, sizer, head_share)
    if fitted is None:
        return None
    return replace(item, text=fitted[0], tokens=fitted[1], chars=len(fitted[0]))


def _fit(
    text: str, tokens: int, limit: int, sizer: Sizer, head_share: float
) -> tuple[str, int] | None:
    """Shorten a text until its count is at most ``limit``; a dense head needs several tries."""
    room = min(len(text) - 1, int(limit / density(tokens, len(text))))
    for _ in range(_TRIES):
        short = head_tail(text, room, head_share)
        if short is None:
            return None
        size = sizer.size(short, tokens, len(text))
        if size <= limit:
            return short, size
        room = int(room * min(0.9, limit / size))
    return None


def point_to(item: Item, sizer: Sizer) -> Item | None:
    """Replace an item by one line with its name and size; ``None`` where that is no smaller."""
    if item.text is None and item.kind != "image":
        return replace(item, tokens=POINTER_TOKENS) if item.tokens > LEAST_TOKENS else None
    text = pointer_text(item)
    size = sizer.size(text, item.tokens, len(item.text or ""))
    if size >= item.tokens:
        return None
    kind = "tool_result" if item.is_result else "text"
    return replace(item, kind=kind, text=text, tokens=size, chars=len(text))


def pointer_text(item: Item) -> str:
    name = (item.name or "").strip()[:60]
    what = item.kind.replace("_", " ") + (f" of {name}" if name else "")
    chars = item.chars if item.text is None else len(item.text)
    length = "" if chars is None else f", {chars:,} characters"
    return f"{_POINTER} {what}, {item.tokens:,} tokens{length}]"


def is_pointer(text: str | None) -> bool:
    return text is not None and len(text) <= _LONGEST_POINTER and text.startswith(_POINTER)


def extract(
    parts: Iterable[tuple[str, Iterable[Item]]], limit: int, head_share: float
) -> str | None:
    """Return a short text that stands for topics, each a title (or blank) and its items.

    ``None`` where a text is unknown. Reasoning is left out: it only means something to its model.
    """
    lines = []
    for title, items in parts:
        lines.append(title.strip())
        for item in items:
            if item.kind == "image":
                lines.append(item.text or pointer_text(item))
            elif item.text is None and item.kind != "reasoning":
                return None
            elif item.text and item.kind != "reasoning":
                lines.append(_spoken(item.name or item.role, item.text.strip()))
    return head_tail("\n".join(filter(None, lines)), limit, head_share) or NO_CONTENT


def _spoken(who: str, text: str) -> str:
    return f"{who}: {text}" if text else ""


def merged_text(bulks: Iterable[Bulk], limit: int, head_share: float) -> str | None:
    """Return one text for several bulks, each with an equal share of the limit."""
    texts = [bulk.text for bulk in bulks]
    known = [text.strip() or NO_CONTENT for text in texts if text is not None]
    if len(known) < len(texts):
        return None
    joined = "\n".join(known)
    if len(joined) <= limit:
        return joined
    share = (limit - len(known) + 1) // len(known)
    cut = [head_tail(text, share, head_share) or text[:share] for text in known]
    return "\n".join(cut)
