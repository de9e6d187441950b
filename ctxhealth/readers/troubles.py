"""Notes on lines that could not be read: the first ones singly, floods together."""

from __future__ import annotations

from typing import Any

_SINGLY = 20
_TOGETHER = 100
_TEXT = 300


class Troubles:
    """Collects (line number, problem); a thousand bad lines are about thirty notes."""

    def __init__(self) -> None:
        self._single: list[list[Any]] = []
        # [first line, last line, count, the first problem]
        self._flood: list[Any] | None = None
        self._told = 0

    @property
    def due(self) -> bool:
        return bool(self._single) or (self._flood is not None and self._flood[2] >= _TOGETHER)

    def add(self, line: int, problem: str) -> None:
        problem = problem[:_TEXT]
        if self._told + len(self._single) < _SINGLY:
            self._single.append([line, problem])
        elif self._flood is None:
            self._flood = [line, line, 1, problem]
        else:
            self._flood[1:3] = [line, self._flood[2] + 1]

    def take(self) -> list[dict[str, Any]]:
        """The fields of the notes to tell now."""
        notes = [
            _note(1, f"Line {line} could not be read: {problem}.") for line, problem in self._single
        ]
        self._told += len(self._single)
        self._single = []
        if self._flood is not None:
            first, last, count, problem = self._flood
            text = f"Lines {first} to {last} hold what could not be read, the first: {problem}."
            notes.append(_note(count, text))
            self._flood = None
        return notes

    def snapshot(self) -> list[Any]:
        return [self._single, self._flood, self._told]

    def restore(self, state: list[Any]) -> None:
        self._single, self._flood, self._told = state


def _note(count: int, text: str) -> dict[str, Any]:
    return {"level": "warning", "code": "unreadable_line", "count": count, "text": text}
