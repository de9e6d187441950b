"""Counting in pieces, so that no text however long or odd stops the process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from ctxhealth.tokens.estimate import estimate
from ctxhealth.tokens.vocabularies import encoding, name_for

# The vocabulary for models that nobody knows one of.
DEFAULT = "o200k_base"
# A run of about a million equal blanks makes tiktoken panic; pieces stay far below.
PIECE = 50_000
# Beyond this the rest is taken to be like the beginning.
MOST = 4_000_000
_LOOK_BACK = 2_000
_CACHED = 10_000


class Count(NamedTuple):
    """``exact``: by the model's own vocabulary and whole; otherwise an estimate."""

    tokens: int
    exact: bool


class _Cache:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: OrderedDict[bytes, Count] = OrderedDict()

    def get(self, key: bytes) -> Count | None:
        with self._lock:
            found = self._counts.get(key)
            if found is not None:
                self._counts.move_to_end(key)
            return found

    def put(self, key: bytes, count: Count) -> None:
        with self._lock:
            self._counts[key] = count
            if len(self._counts) > _CACHED:
                self._counts.popitem(last=False)


_cache = _Cache()


def count(text: str, model: str | None = None) -> Count:
    """Tokens of ``text`` for ``model``. Blocks for about 50 us per 1,000 characters.

    Special tokens in the text count as the text that they are. Never raises on any text.
    """
    if not text:
        return Count(0, True)
    known = name_for(model) if model else None
    name = known or DEFAULT
    key = blake2b(f"{known}\0".encode() + text.encode("utf-8", "surrogatepass")).digest()
    found = _cache.get(key)
    if found is None:
        found = _counted(text, name, exact=known is not None)
        _cache.put(key, found)
    return found


def _counted(text: str, name: str, *, exact: bool) -> Count:
    vocabulary = encoding(name)
    if vocabulary is None:
        return Count(estimate(text), False)
    seen, tokens = 0, 0
    for piece, clean in _pieces(text[:MOST]):
        found = _encoded(vocabulary, piece)
        exact = exact and clean and found is not None
        tokens += estimate(piece) if found is None else found
        seen += len(piece)
    if seen < len(text):
        return Count(round(tokens * len(text) / seen), False)
    return Count(tokens, exact)


def _encoded(vocabulary: Any, piece: str) -> int | None:
    try:
        return len(vocabulary.encode_ordinary(piece))
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:
        # A panic inside tiktoken is no Exception; the text is counted by its characters then.
        return None


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Pieces, and whether each ends where a token ends in any case."""
    at = 0
    while len(text) - at > PIECE:
        end, clean = _cut(text, at + PIECE)
        yield text[at:end], clean
        at = end
    yield text[at:], True


def _cut(text: str, end: int) -> tuple[int, bool]:
    """The last place before ``end`` that both vocabularies split at: between a newline and a
    letter, or between a letter and the blank before another letter."""
    for at in range(end, end - _LOOK_BACK, -1):
        before, here = text[at - 1], text[at]
        if before == "\n" and _is_letter(here):
            return at, True
        if here == " " and _is_letter(before) and _is_letter(text[at + 1 : at + 2]):
            return at, True
    return end, False


def _is_letter(char: str) -> bool:
    return char.isascii() and char.isalpha()
