"""An ``events`` frame that is no JSON as a whole -> its events one by one.

One bad value (``NaN``, a lone surrogate, a quote too few) spoils the frame for a JSON parser. The
envelope is read without the events; then the array is cut where brackets outside of strings say,
and where they cannot be trusted, where the next readable event begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecoder
from typing import NamedTuple

import msgspec

from ctxhealth.wire.frames import AGENT_FRAME, Events
from ctxhealth.wire.limits import BATCH_EVENTS, EVENT_BYTES

_ARRAY = re.compile(r'"events"[ \t\r\n]*:[ \t\r\n]*\[')
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_NEXT = re.compile(r"[ \t\r\n]*(?:,|$)")
# Within a string quotes are escaped, so that this begins an object whatever stands before it.
_OBJECT = re.compile(r',[ \t\r\n]*(?=\{[ \t\r\n]*"(seq"[ \t\r\n]*:)?)')
_CLOSES = {"}": "{", "]": "["}
_ENDS_TRIED = 20
# How many objects within a broken event are looked at for being the next event.
_LOOKS = 200
_JSON = JSONDecoder()


class _Looks:
    """What is left of the work that one frame may cause."""

    def __init__(self) -> None:
        self.left = _LOOKS


class _Part(NamedTuple):
    start: int
    end: int


def salvage(text: str) -> Events | None:
    """The frame with every event that can be told apart, good or bad; None where the envelope
    itself cannot be read or there are more events than a frame may have."""
    array = _ARRAY.search(text)
    if array is None:
        return None
    found = _envelope(text, array.end())
    if found is None:
        return None
    frame, end = found
    raws: list[msgspec.Raw] = []
    for part in _parts(text[:end], array.end()):
        if len(raws) == BATCH_EVENTS:
            return None
        raws.append(msgspec.Raw(text[part.start : part.end].encode("utf-8", "surrogatepass")))
    return Events(epoch=frame.epoch, events=raws)


def _envelope(text: str, start: int) -> tuple[Events, int] | None:
    """The frame without its events, and where the array ends."""
    end = len(text)
    for _ in range(_ENDS_TRIED):
        end = text.rfind("]", start, end)
        if end < 0:
            return None
        try:
            frame = AGENT_FRAME.decode(text[:start] + text[end:])
        except (msgspec.MsgspecError, ValueError, RecursionError):
            continue
        return (frame, end) if isinstance(frame, Events) else None
    return None


def _parts(text: str, at: int) -> Iterator[_Part]:
    """The elements of the array whose first begins at ``at`` and whose last ends with ``text``."""
    looks = _Looks()
    while (at := _after(_BETWEEN, text, at)) < len(text):
        end = _closed(text, at)
        if end is None or not _is_json(text[at:end]):
            # A string that stands alone is a key: the brace before it is what is missing.
            trusted = end is not None and text[at] != '"'
            end = _next_event(text, at, end if end and trusted else len(text), looks)
        yield _Part(at, end)
        at = end


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _closed(text: str, at: int) -> int | None:
    """Where the value at ``at`` ends by its brackets; None where they do not match."""
    opened: list[str] = []
    for token in _TOKEN.finditer(text, at):
        sign = token.group()
        if sign == "," and not opened:
            return token.start()
        if sign in "{[":
            opened.append(sign)
        elif sign in "}]":
            if not opened or opened.pop() != _CLOSES[sign]:
                return None
            if not opened:
                return token.end() if _NEXT.match(text, token.end()) else None
    return None if opened else len(text)


def _is_json(raw: str) -> bool:
    try:
        msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


def _next_event(text: str, at: int, end: int, looks: _Looks) -> int:
    """Where the broken event at ``at`` ends: before the next event, at ``end`` at the latest."""
    for found in _OBJECT.finditer(text, at + 1, end):
        if found.group(1) or _is_event(text, found.end(), looks):
            return found.start()
    return end


def _is_event(text: str, at: int, looks: _Looks) -> bool:
    """Whether a whole event stands here; a part of one has neither of the two."""
    if looks.left <= 0:
        return False
    looks.left -= 1
    try:
        value, _ = _JSON.raw_decode(text[at : at + EVENT_BYTES])
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "seq" in value and "type" in value
