"""The shape of a line that could not be read: enough to find the fault, nothing of its content."""

from __future__ import annotations

import re

from ctxhealth.imports.limits import SHAPE_CHARS

_LOOKED_AT = 2_000
# A string; a key keeps its name, which says where one is and not what was said.
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?')
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}")
_WORDS = re.compile(r"[^\s{}\[\]\",:]+")
_PLAIN = {"true", "false", "null"}


def shape_of(line: bytes) -> str:
    """``{"type":"…","n":0,…`` and how many bytes: strings, numbers and words are hidden."""
    text = line[:_LOOKED_AT].decode("utf-8", "replace").replace("\x00", "\N{SYMBOL FOR NULL}")
    hidden: list[str] = []
    at = 0
    for found in _STRING.finditer(text):
        hidden.append(_WORDS.sub(_word, text[at : found.start()]))
        hidden.append(_string(found))
        at = found.end()
    rest = text[at:]
    opened, quote, _ = rest.partition('"')
    hidden.append(_WORDS.sub(_word, opened) + (f"{quote}…" if quote else ""))
    shape = " ".join("".join(hidden).split())
    if len(shape) > SHAPE_CHARS:
        shape = f"{shape[:SHAPE_CHARS]}…"
    return f"{shape} ({len(line):,} bytes)"


def _string(found: re.Match[str]) -> str:
    key, colon = found.group(1), found.group(2)
    if colon and _KEY.fullmatch(key):
        return f'"{key}":'
    return f'"…"{":" if colon else ""}' if key else f'""{":" if colon else ""}'


def _word(found: re.Match[str]) -> str:
    word = found.group()
    if word in _PLAIN:
        return word
    if set(word) == {"\N{SYMBOL FOR NULL}"}:
        return "NUL"
    return "0" if word[0].isdigit() or word[0] == "-" else "…"
