"""What could not be read of a file, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ctxhealth.imports.limits import TROUBLES
from ctxhealth.imports.shapes import shape_of
from ctxhealth.readers.base import Event
from ctxhealth.store.queries.imports import Trouble
from ctxhealth.wire import Reject

# As the readers' notes say it; the line is counted from where the reader began.
_ONE = re.compile(r"Line (\d+) could not be read: (.*)\.", re.DOTALL)
_MANY = re.compile(
    r"Lines (\d+) to (\d+) hold what could not be read, the first: (.*)\.", re.DOTALL
)


class Troubles:
    """``before``: by how much the reader's count of lines is ahead of the file's own."""

    def __init__(self, before: int = 0) -> None:
        self._before = before
        self._shapes: dict[int, str] = {}
        self._found: list[Trouble] = []
        self.more = 0

    def saw(self, line: int, data: bytes | None, size: int) -> None:
        """A line that the reader complained about; the problem comes later, in its note."""
        if len(self._shapes) < TROUBLES:
            too_long = f"({size:,} bytes)"
            self._shapes[line] = shape_of(data) if data is not None else too_long

    def heard(self, events: Iterable[Event]) -> None:
        """Take the problems from the notes that go to the chat as well."""
        for event in events:
            if event["type"] == "note" and event.get("code") == "unreadable_line":
                self._note(str(event.get("text", "")), int(event.get("count") or 1))

    def rejected(self, line: int, event: Event, problem: Reject) -> None:
        """The reader made an event that this server does not take."""
        said = f"its event {event['type']} was not taken: {problem.detail} at {problem.path}"
        self._add(Trouble(line=line, problem=said[:400]))

    def torn(self, line: int, waiting: bytes) -> None:
        shape = shape_of(waiting)
        self._add(Trouble(line=line, problem="the last line is not finished", shape=shape))

    def all(self) -> list[Trouble]:
        """In the order of the file; behind the last one how many more there were."""
        found = sorted(self._found, key=lambda trouble: trouble.line)
        if self.more:
            last = found[-1].line if found else 0
            found.append(Trouble(line=last, problem="more that is not listed", count=self.more))
        return found

    def _note(self, text: str, count: int) -> None:
        one, many = _ONE.fullmatch(text), _MANY.fullmatch(text)
        if many is not None:
            first, last = self._line(many.group(1)), self._line(many.group(2))
            self._add(Trouble(line=first, until=last, count=count, problem=many.group(3),
                              shape=self._shapes.pop(first, "")))  # fmt: skip
        elif one is not None:
            line = self._line(one.group(1))
            self._add(Trouble(line=line, problem=one.group(2), shape=self._shapes.pop(line, "")))

    def _line(self, text: str) -> int:
        return max(1, int(text) - self._before)

    def _add(self, trouble: Trouble) -> None:
        if len(self._found) < TROUBLES:
            self._found.append(trouble)
        else:
            self.more += trouble.count
