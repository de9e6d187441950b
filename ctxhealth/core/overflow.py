"""A provider's error, read: does it say that the context is full, and with which numbers?

Agents often pass on only status, code and text. What is read here is used where the agent itself
stated nothing; in doubt it is no overflow, because a rescue for a rate limit helps nobody.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from ctxhealth.core.overflow_phrases import (
    CODE_IN_TEXT,
    CODES,
    LIMIT,
    OTHER_STATUS,
    OUTPUT,
    OUTPUT_PARTS,
    PART,
    POSITIVE,
    PROMPT,
    VETO,
)

Kind = Literal["prompt", "output", "unstated"]
# A longer text is a traceback or a page; the provider's sentence stands at its beginning or end.
READ_CHARS = 4_000
_BLANKS = re.compile(r"[\s\\]+")


class Overflow(NamedTuple):
    """What an overflow error states, in tokens; None where it does not.

    ``kind``: ``prompt`` is too large by itself, or only with the ``output`` that the request asks
    for beside it; ``unstated`` where the numbers do not tell.
    """

    stated_window: int | None = None
    stated_prompt: int | None = None
    stated_output: int | None = None
    kind: Kind = "unstated"


def parse_overflow(status: int | None, code: str | None, detail: str | None) -> Overflow | None:
    """Read a failed call; None where it is no overflow of the context.

    A code that names the overflow decides alone. Words need a status that does not answer for
    something else, and none that speak of a rate, a quota, a file or the answer's length.
    """
    text = _line(detail)
    if _names_overflow(code) or CODE_IN_TEXT.search(text):
        return stated_numbers(text)
    if status in OTHER_STATUS or VETO.search(text):
        return None
    if not any(phrase.pattern.search(text) for phrase in POSITIVE):
        return None
    return stated_numbers(text)


def stated_numbers(text: str) -> Overflow:
    """The numbers in the text of an error that is known to be an overflow."""
    text = _line(text)
    window = _first(LIMIT, text)
    prompt, output = _parts(text)
    if prompt is None:
        prompt = _first(PROMPT, text)
    if output is None:
        output = _first(OUTPUT, text)
    return Overflow(window, prompt, output, _kind(window, prompt, output))


def _kind(window: int | None, prompt: int | None, output: int | None) -> Kind:
    if window is None or prompt is None:
        return "unstated"
    if prompt > window or not output:
        return "prompt"
    return "output"


def _names_overflow(code: str | None) -> bool:
    if code is None or len(code) > 80:
        return False
    return "".join(char for char in code.lower() if char.isalnum()) in CODES


def _line(detail: str | None) -> str:
    if not detail:
        return ""
    if len(detail) > READ_CHARS:
        detail = f"{detail[: READ_CHARS // 2]} {detail[-READ_CHARS // 2 :]}"
    return _BLANKS.sub(" ", detail).replace("\u2019", "'").lower()


def _parts(text: str) -> tuple[int | None, int | None]:
    """Prompt and output of a sum that is told in its parts."""
    prompt: int | None = None
    output: int | None = None
    for match in PART.finditer(text):
        value = _int(match.group(1))
        if match.group(2) in OUTPUT_PARTS:
            output = (output or 0) + value
        else:
            prompt = (prompt or 0) + value
    return prompt, output


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match is not None:
            return _int(match.group(match.lastindex or 0))
    return None


def _int(digits: str) -> int:
    return int(digits.replace(",", ""))
