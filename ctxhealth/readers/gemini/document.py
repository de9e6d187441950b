"""One JSON document over many lines -> its facts and its messages, none held longer than needed.

Older versions write a whole session as one indented document. It is never held as a whole: braces
outside of strings are counted, and each object of ``messages`` is given out when it closes.
"""

from __future__ import annotations

import json
import re

from ctxhealth.readers.timeline import Part
from ctxhealth.readers.values import Row

# Strings whole, so that no brace in one counts; an unfinished one runs to the line's end.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]]')
_FACT = re.compile(r'"(sessionId|startTime|lastUpdated|summary|kind)"\s*:\s*("(?:[^"\\]|\\.)*")')
# A message begins so in an indented document: here reading can go on after a damaged one.
_BEGINS = "    {"
MOST_CHARS = 16 * 1024 * 1024


class Document(Part):
    """``on`` from its first line; ``pieces`` is the message that is being read."""

    kept = ("on", "depth", "inside", "key", "pieces", "held")

    def __init__(self) -> None:
        self.on = False
        self.depth = 0
        self.inside = False
        self.key = ""
        self.pieces: list[str] = []
        self.held = 0

    def line(self, text: str) -> tuple[list[Row], list[str]]:
        """Rows that this line completes, the document's facts as a row of their own, and what
        was lost."""
        self.on = True
        lost: list[str] = []
        if text.rstrip() == _BEGINS and self.inside and self.depth != 2:
            lost.append("a message that does not end before the next one")
            self._begin_again()
        rows = self._facts(text)
        start = 0 if self.depth >= 3 else None
        for found in _TOKEN.finditer(text):
            start, message = self._token(found, text, start)
            if message is not None:
                self._message(message, rows, lost)
        if start is not None:
            self._keep(text[start:], lost)
        return rows, lost

    def _facts(self, text: str) -> list[Row]:
        if self.depth != 1 or self.inside:
            return []
        found = {name: json.loads(value) for name, value in _FACT.findall(text)}
        return [found] if found else []

    def _token(
        self, found: re.Match[str], text: str, start: int | None
    ) -> tuple[int | None, str | None]:
        """(where the message that goes on began in this line, a message that ended here)."""
        token = found.group()
        if token[0] == '"':
            if self.depth == 1:
                self.key = token.strip('"')
        elif token in "{[":
            self.depth += 1
            if self.depth == 2:
                self.inside = token == "[" and self.key == "messages"
            elif self.depth == 3 and self.inside:
                start = found.start()
        else:
            self.depth = max(0, self.depth - 1)
            if self.depth == 2 and start is not None:
                whole = "".join([*self.pieces, text[start : found.end()]])
                self._empty()
                return None, whole
            if self.depth == 1:
                self.inside = False
        return start, None

    def _message(self, text: str, rows: list[Row], lost: list[str]) -> None:
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            lost.append(f"a message of {len(text):,} characters that is no JSON")
            return
        if isinstance(value, dict):
            rows.append(value)

    def _keep(self, text: str, lost: list[str]) -> None:
        if self.held > MOST_CHARS:
            return
        self.pieces.append(text + "\n")
        self.held += len(text) + 1
        if self.held > MOST_CHARS:
            lost.append(f"a message of more than {MOST_CHARS:,} characters")
            self.pieces = ["\x00"]

    def _empty(self) -> None:
        self.pieces, self.held = [], 0

    def _begin_again(self) -> None:
        self._empty()
        self.depth = 2
