"""Claude Code session files (``~/.claude/projects/<folder>/<session>.jsonl``) and sub-agents'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from ctxhealth.readers.base import Event
from ctxhealth.readers.claude_code.chat import ChatRows
from ctxhealth.readers.claude_code.replies import LONG_MS
from ctxhealth.readers.claude_code.rows import is_row
from ctxhealth.readers.claude_code.sidechains import Sidechains
from ctxhealth.readers.claude_code.stay import WindowOf
from ctxhealth.readers.objects import ObjectParser, Parsed
from ctxhealth.readers.seen import Seen
from ctxhealth.readers.times import millis
from ctxhealth.readers.troubles import Troubles
from ctxhealth.readers.values import Row, dict_at, one_line, text_at

_VERSION = 1
_OPENING = ("user", "assistant", "system", "attachment")
_TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}


class ClaudeCodeReader:
    """See ``readers.base.Reader``.

    ``name`` stands in where no row names the session. ``chat`` overrides the session's id.
    ``window_of`` tells a model's window, for failed compactions that only a load shows.
    ``elsewhere`` tells whether a sub-agent has a file of its own, which is then read instead.
    """

    format: ClassVar[str] = "claude-code"
    agent: ClassVar[str] = "claude-code"
    runtime: ClassVar[str] = "claude-code"

    def __init__(
        self,
        name: str = "session",
        *,
        chat: str | None = None,
        window_of: WindowOf | None = None,
        elsewhere: Callable[[str], bool] | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._name, self._given, self._window_of = name, chat, window_of
        self._main: ChatRows | None = None
        self._sides = Sidechains(window_of, elsewhere)
        self._objects = ObjectParser(is_row)
        self._seen = Seen()
        self._troubles = Troubles()
        self._title: str | None = None
        self._clock = 0

    @property
    def chat(self) -> str | None:
        return self._main.chat if self._main is not None else None

    @property
    def waiting(self) -> bool:
        return any(chat.waiting for chat in self._chats())

    def feed(self, line: bytes) -> list[Event]:
        self.counts["lines"] += 1
        self._parsed(self._objects.parse(line))
        return list(self._take())

    def skip(self, size: int) -> list[Event]:
        self.counts["lines"] += 1
        self._trouble(f"a line of {size:,} bytes is longer than this reader holds")
        return list(self._take())

    def settle(self, idle_ms: int) -> list[Event]:
        for chat in self._chats():
            chat.settle(self._clock, idle_ms)
        self._tell_troubles()
        return list(self._take())

    def finish(self) -> list[Event]:
        self._parsed(self._objects.flush())
        return self.settle(LONG_MS)

    def snapshot(self) -> dict[str, Any]:
        return {
            "format": self.format, "version": _VERSION, "counts": dict(self.counts),
            "main": self._main.snapshot() if self._main is not None else None,
            "sides": self._sides.snapshot(), "seen": self._seen.snapshot(),
            "carry": [self._objects.carry, self._objects.carried],
            "troubles": self._troubles.snapshot(), "title": self._title, "clock": self._clock,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        if (state.get("format"), state.get("version")) != (self.format, _VERSION):
            raise ValueError("the saved place is of another reader or version")
        self.counts = Counter(state["counts"])
        main = state["main"]
        if main is not None:
            self._main = ChatRows(main["chat"], main["parent"], self._window_of)
            self._main.restore(main)
        self._sides.restore(state["sides"])
        self._seen.restore(state["seen"])
        self._objects.carry, self._objects.carried = state["carry"]
        self._troubles.restore(state["troubles"])
        self._title, self._clock = state["title"], state["clock"]

    # -- rows

    def _parsed(self, found: Parsed) -> None:
        for row in found.rows:
            self._row(row)
        if found.repaired:
            self.counts["repaired"] += 1
        for problem in found.problems:
            self._trouble(problem)

    def _row(self, row: Row) -> None:
        kind = row.get("type")
        if not isinstance(kind, str):
            self._trouble("an object without a type")
            return
        self.counts["rows"] += 1
        self._clock = millis(row.get("timestamp")) or self._clock
        uuid = text_at(row, "uuid")
        if uuid is not None and self._seen.again(uuid):
            self.counts["replayed"] += 1
            return
        if kind in _OPENING:
            self._conversation(row, uuid or f"line-{self.counts['lines']}")
        elif kind in _TITLES:
            self._titled(text_at(row, _TITLES[kind]))
        elif self._main is not None:
            self._about_the_session(row, kind)

    def _conversation(self, row: Row, uuid: str) -> None:
        main = self._opened(row)
        if row.get("isSidechain") is True and not self._is_child:
            own = self._sides.row(row, uuid, self._clock, main)
        else:
            own = main
            main.row(row, uuid, self._clock)
            self._sides.returned(row, self._clock)
        self._overtaken(own)

    def _about_the_session(self, row: Row, kind: str) -> None:
        assert self._main is not None
        if kind == "api-request":
            self._main.request(row, self._clock, self._seen)
        elif kind == "cost-state":
            if self._sides.active:
                self._main.stay.disturb()
            self._main.billed(row, self._clock)
        elif kind == "progress" and dict_at(row, "data").get("type") == "agent_progress":
            self._overtaken(self._sides.progress(row, self._clock, self._main, self._seen))

    def _overtaken(self, own: ChatRows | None) -> None:
        """The file grows by rows of ``own``, or of a sub-agent that is read elsewhere; the others
        in it are as quiet as its clock says."""
        for chat in self._chats():
            if chat is not own:
                chat.replies.overtaken(self._clock)

    def _opened(self, row: Row) -> ChatRows:
        if self._main is None:
            session = text_at(row, "sessionId") or self._name
            agent = text_at(row, "agentId") if row.get("isSidechain") is True else None
            id = session if agent is None else f"{session}:agent-{agent}"
            parent = None if agent is None else session
            self._main = ChatRows(self._given or id, parent, self._window_of)
            self._main.open(row, self._clock, self._title)
        return self._main

    @property
    def _is_child(self) -> bool:
        return self._main is not None and self._main.parent is not None

    def _titled(self, text: str | None) -> None:
        if text is None:
            return
        self._title = one_line(text, 120)
        if self._main is not None:
            self._main.title(text, self._clock)

    # -- what goes out

    def _chats(self) -> Iterator[ChatRows]:
        if self._main is not None:
            yield self._main
        yield from self._sides.chats()

    def _trouble(self, problem: str) -> None:
        self.counts["unreadable"] += 1
        self._troubles.add(self.counts["lines"], problem)
        if self._troubles.due:
            self._tell_troubles()

    def _tell_troubles(self) -> None:
        """Notes on unreadable lines; they wait until the chat they belong to is known."""
        if self._main is not None:
            for fields in self._troubles.take():
                self._main.line.add("note", self._clock, **fields)

    def _take(self) -> Iterator[Event]:
        for chat in self._chats():
            for event in chat.line.take():
                self.counts["events"] += 1
                self.counts[event["type"]] += 1
                if chat is self._main:
                    kind = "synthetic" if event.get("synthetic") else event["type"]
                    self.counts[f"own {kind}"] += 1
                yield event
        self._sides.forget_ended()
        if self._troubles.due:
            self._tell_troubles()
