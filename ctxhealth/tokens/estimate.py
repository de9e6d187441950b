"""The cheap estimate that needs no vocabulary: by characters, aware of scripts."""

from __future__ import annotations

# Characters a token holds: of ASCII, of other alphabets, of scripts without spaces.
_ASCII, _ALPHABET, _DENSE = 4.0, 2.0, 1.0
# From here on scripts mostly write a word per character or two (CJK and beyond).
_DENSE_FROM = "\u2e80"
# Of a longer text only so many characters are looked at.
_SAMPLE = 20_000


def estimate(text: str) -> int:
    """Tokens of ``text``, to be marked as an estimate. At least 1 for any text but the empty."""
    if not text:
        return 0
    sample = text[:_SAMPLE]
    ascii_only = len(sample.encode("ascii", "ignore"))
    dense = sum(char >= _DENSE_FROM for char in sample) if ascii_only < len(sample) else 0
    other = len(sample) - ascii_only - dense
    tokens = ascii_only / _ASCII + other / _ALPHABET + dense / _DENSE
    return max(1, round(tokens * len(text) / len(sample)))
