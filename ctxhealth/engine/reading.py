"""Reading plain JSON values with errors that name the field and the reason."""

from __future__ import annotations

from collections.abc import Iterator

_MAX_DEPTH = 20


class HistoryError(ValueError):
    """A document that cannot be read: ``path`` names the field, ``reason`` says why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path or 'history'}: {reason}")
        self.path = path
        self.reason = reason


class Reader:
    """One JSON object and where it stands in the document."""

    def __init__(self, data: object, path: str = "", depth: int = 0) -> None:
        if not isinstance(data, dict):
            raise HistoryError(path, f"must be an object, not {type(data).__name__}")
        if depth > _MAX_DEPTH:
            raise HistoryError(path, f"nested deeper than {_MAX_DEPTH}")
        self._data = data
        self._path = path
        self._depth = depth

    def at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def has(self, name: str) -> bool:
        return self._data.get(name) is not None

    def text(self, name: str) -> str:
        value = self._data.get(name)
        if not isinstance(value, str):
            raise HistoryError(self.at(name), "must be a text")
        return value

    def text_or_none(self, name: str) -> str | None:
        return self.text(name) if self.has(name) else None

    def size(self, name: str, default: int | None = None) -> int:
        value = self._data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise HistoryError(self.at(name), "must be an integer, 0 or more")
        return value

    def size_or_none(self, name: str) -> int | None:
        return self.size(name) if self.has(name) else None

    def flag(self, name: str, default: bool) -> bool:
        value = self._data.get(name, default)
        if not isinstance(value, bool):
            raise HistoryError(self.at(name), "must be true or false")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise HistoryError(self.at(name), "must be a list of texts")
        return tuple(str(value) for value in values)

    def one(self, name: str) -> Reader:
        return Reader(self._data.get(name), self.at(name), self._depth + 1)

    def many(self, name: str) -> Iterator[Reader]:
        for index, value in enumerate(self._list(name)):
            yield Reader(value, f"{self.at(name)}[{index}]", self._depth + 1)

    def _list(self, name: str) -> list[object]:
        value = self._data.get(name)
        if value is None:
            return []
        if not isinstance(value, (list, tuple)):
            raise HistoryError(self.at(name), "must be a list")
        return list(value)
