"""Text of a wanted size, the same for the same seed. Four characters are one token here."""

from __future__ import annotations

from itertools import count as counting

CHARS_PER_TOKEN = 4
_TEXT = (
    "migration table index row lock retry deploy branch commit review error trace queue worker "
    "schema column value batch page cache region build test stage release ticket customer order "
    "invoice parcel refund delay login session report metric alert graph limit quota budget"
)
_WORDS = _TEXT.split()


def count(text: str) -> int:
    """Tokens of ``text`` by this demo's tokenizer; at least 1 for any text."""
    return max(1, len(text) // CHARS_PER_TOKEN) if text else 0


def prose(tokens: int, seed: int) -> str:
    """Text that ``count`` finds to be exactly ``tokens`` tokens."""
    chars = tokens * CHARS_PER_TOKEN
    parts: list[str] = []
    size = 0
    for step in counting(seed):
        word = _WORDS[(step * 7 + step // 5) % len(_WORDS)]
        parts.append(word)
        size += len(word) + 1
        if size >= chars:
            break
    return " ".join(parts)[:chars].ljust(chars, ".")
