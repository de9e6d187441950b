"""Gemini CLI sessions (``~/.gemini/tmp/<project>/chats/session-*``): rows, or one document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ctxhealth.readers.base import Event
from ctxhealth.readers.errors import model_error
from ctxhealth.readers.gemini.compressions import compression_in, snapshot_in
from ctxhealth.readers.gemini.context import Context
from ctxhealth.readers.gemini.document import Document
from ctxhealth.readers.gemini.items import (
    calls_of,
    content_of,
    reply_items,
    responses_in,
    result_items,
    words_of,
)
from ctxhealth.readers.gemini.turns import Turns
from ctxhealth.readers.objects import Parsed
from ctxhealth.readers.single import LONG_MS, SingleChatReader
from ctxhealth.readers.sizes import no_result, sized
from ctxhealth.readers.timeline import Part
from ctxhealth.readers.times import millis
from ctxhealth.readers.values import Row, count_at, dict_at, list_at, one_line, text_at, word_at

_TITLE = 120
_FACTS = frozenset({"startTime", "lastUpdated", "summary", "kind"})
_USAGE = (
    ("input", "input"), ("output", "output"), ("cached", "cache_read"),
    ("thoughts", "reasoning"), ("total", "total"),
)  # fmt: skip


class Facts(Part):
    """The model that is named, the title. ``header`` is the session's id until its start is
    known, which in a document stands behind it. ``load`` is the last prompt that was counted,
    ``compressed`` whether its compression was told since; ``held`` the newest reply, where its
    calls may still be written."""

    kept = ("header", "model", "title", "load", "compressed", "held")

    def __init__(self) -> None:
        self.header: str | None = None
        self.model: str | None = None
        self.title: str | None = None
        self.load: int | None = None
        self.compressed = False
        self.held: Row | None = None


class GeminiReader(SingleChatReader):
    """One message of the type ``gemini`` is one reply with its usage; cached is inside input."""

    format: ClassVar[str] = "gemini"
    agent: ClassVar[str] = "gemini"
    runtime: ClassVar[str] = "gemini-cli"

    def __init__(self, name: str = "session", **options: Any) -> None:
        super().__init__(name, **options)
        self._facts = Facts()
        self._context = Context()
        self._turns = Turns(self.line)
        self._document = Document()

    @staticmethod
    def is_row(value: Row) -> bool:
        return "sessionId" in value or (isinstance(value.get("type"), str) and "id" in value)

    @property
    def parts(self) -> Mapping[str, Part]:
        return {
            "facts": self._facts, "context": self._context, "turns": self._turns,
            "document": self._document,
        }  # fmt: skip

    @property
    def waiting(self) -> bool:
        turn = self._turns.turn
        failed = turn is not None and turn["error"] is not None
        return super().waiting or failed or self._is_said()

    def quiet(self, ts: int, idle_ms: int) -> None:
        if self._is_said():
            self._release()
        if idle_ms >= LONG_MS:
            self._turns.settled(ts)

    def feed(self, line: bytes) -> list[Event]:
        if not self._document.on and (self._opened or line.strip() != b"{"):
            return super().feed(line)
        self.counts["lines"] += 1
        rows, lost = self._document.line(line.decode("utf-8", "replace").rstrip("\r\n"))
        self._parsed(Parsed(rows, lost))
        return self._take()

    def _parsed(self, found: Parsed) -> None:
        for row in found.rows:
            self._row(row)
        if found.repaired:
            self.counts["repaired"] += 1
        for problem in found.problems:
            self._trouble(problem)

    def _row(self, row: Row) -> None:
        if "sessionId" in row:
            self._session(row)
        elif "$rewindTo" in row:
            self._rewound()
        elif isinstance(row.get("$set"), dict):
            self._patched(dict_at(row, "$set"))
        elif isinstance(row.get("type"), str):
            self.counts["rows"] += 1
            self._clock = millis(row.get("timestamp")) or self._clock
            self.take_row(row, row["type"], self._clock)
        elif row.keys() & _FACTS:
            self._facts_of(row)
        else:
            self._trouble("an object without a type")

    def _patched(self, patch: Row) -> None:
        """A patch of the session: its title, or the whole history as it is sent from now on."""
        self._title(text_at(patch, "summary"), self._clock)
        found = snapshot_in(list_at(patch, "messages"))
        if found is None or self._seen.again(f"snapshot {found}"):
            return
        self._release()
        if self._facts.compressed:
            return
        self._facts.compressed = True
        removed = self._context.compacted(self._turns.id)
        self.line.add("compaction.finished", self._clock, attempt=f"c-{found}"[:24],
                      reported="compressed", trigger="proactive", scope="prompt",
                      before=self._facts.load, removed=removed)  # fmt: skip

    def _session(self, row: Row) -> None:
        """The facts of a session; in a document on one line its messages as well."""
        self._facts.header = text_at(row, "sessionId")
        self._facts_of(row)
        for message in list_at(row, "messages"):
            if isinstance(message, dict):
                self._row(message)

    def _facts_of(self, row: Row) -> None:
        start = millis(row.get("startTime"))
        if start is not None:
            self._clock = max(self._clock, start)
            self._begin(start)
        self._title(text_at(row, "summary"), self._clock)

    def _begin(self, ts: int) -> None:
        if not self._opened:
            self.open(self._facts.header, ts)

    def finish(self) -> list[Event]:
        if self._facts.header is not None:
            self._begin(self._clock)
        self._release(whole=False)
        return super().finish()

    def take_row(self, row: Row, kind: str, ts: int) -> None:
        self._begin(ts)
        id = (text_at(row, "id") or f"e{self.counts['rows']}")[:20]
        again = self._seen.again(f"{id} {ts}")
        held = self._facts.held
        if held is not None and not (again and text_at(held, "id") == text_at(row, "id")):
            self._release()
        elif held is not None:
            self._facts.held = row
        if again:
            self.counts["replayed"] += 1
            # A message is written again with its calls, and when their results came.
            if held is not None and calls_of(row):
                self._release()
            elif kind == "gemini":
                self._results(row, id, ts)
            return
        if kind == "user" and (responses := responses_in(row)):
            self._responded(responses, id, ts)
        elif kind == "user":
            self._prompt(row, id, ts)
        elif kind == "gemini" and not calls_of(row):
            self._facts.held = row
        elif kind == "gemini":
            self._reply(row, id, ts)
        elif kind == "error":
            self._failed(row, id, ts)
        elif kind in ("info", "warning"):
            self._told(words_of(row), id, ts)

    def _is_said(self) -> bool:
        """Whether the held reply has words. One that has nothing runs calls that are not written
        yet, however long they take."""
        return self._facts.held is not None and bool(reply_items(self._facts.held, ""))

    def _release(self, *, whole: bool = True) -> None:
        """The held reply is ``whole`` where another message came after it."""
        whole |= self._is_said()
        row, self._facts.held = self._facts.held, None
        if row is not None:
            ts = millis(row.get("timestamp")) or self._clock
            id = (text_at(row, "id") or f"e{self.counts['rows']}")[:20]
            self._reply(row, id, ts, whole=whole)

    # -- rows by type

    def _title(self, words: str | None, ts: int) -> None:
        title = one_line(words or "", _TITLE)
        if title and self._opened and title != self._facts.title:
            self._facts.title = title
            self.line.add("chat.updated", ts, title=title)

    def _rewound(self) -> None:
        text = "The session went back to an earlier point and on from there."
        self.line.add("note", self._clock, level="info", code="branched", text=text)

    def _prompt(self, row: Row, id: str, ts: int) -> None:
        words = words_of(row)
        if self._facts.title is None:
            self._title(words, ts)
        self._turns.prompt(id, ts)
        # Calls of an earlier turn that never got a result: the program does without.
        self._add([no_result(call) for call in list(self._context.calls)], ts)
        self._add([{"type": "message.added", "id": id, **sized("user", "text", words)}], ts)

    def _responded(self, responses: list[Row], id: str, ts: int) -> None:
        """Results of calls as a message of their own; most were told with their calls."""
        open_ = [call for call in responses if word_at(call, "id") in self._context.calls]
        self._add(result_items(open_, id), ts)

    def _reply(self, row: Row, id: str, ts: int, *, whole: bool = True) -> None:
        model = word_at(row, "model")
        if model is not None and model != self._facts.model:
            self._facts.model = model
            self.line.add("chat.updated", ts, model=model, provider="google")
        self._turns.ensure(id, ts)
        items = reply_items(row, id)
        content = content_of(items) if whole else None
        self.line.add("request.sent", ts, request=f"r-{id}")
        usage = wire_usage(dict_at(row, "tokens"))
        self.line.add("model.replied", ts, request=f"r-{id}", content=content, model=model,
                      usage=usage)  # fmt: skip
        self._facts.load = usage["input"] if usage is not None else self._facts.load
        self._facts.compressed = False
        self._add(items, ts)
        self._results(row, id, ts)
        self._turns.replied(_held_by(content), ts)

    def _results(self, row: Row, id: str, ts: int) -> None:
        """Those that were not told yet; each at its own time."""
        open_ = [call for call in calls_of(row) if word_at(call, "id") in self._context.calls]
        for call in open_:
            at = max(ts, millis(call.get("timestamp")) or ts)
            own = (word_at(call, "id") or id)[-40:]
            self._add(result_items([call], f"{id}.{own}"), at)

    def _failed(self, row: Row, id: str, ts: int) -> None:
        words = words_of(row) or "no reason given"
        self._turns.ensure(id, ts)
        self.line.add("request.sent", ts, request=f"r-{id}")
        error = model_error(words, None, None)
        self.line.add("model.failed", ts, request=f"r-{id}", error=error, detail=words[:2_000])
        self._turns.failed(words)

    def _told(self, words: str, id: str, ts: int) -> None:
        """What was told to the user is no part of the context; a compression stands only there."""
        told = compression_in(words)
        done = told is not None and told["reported"] == "compressed"
        if told is None or (done and self._facts.compressed):
            return
        self._facts.compressed |= done
        removed = self._context.compacted(None) if done else None
        self.line.add("compaction.finished", ts, attempt=f"c-{id}", removed=removed, **told)

    def _add(self, items: list[Event], ts: int) -> None:
        turn = self._turns.id
        for item in items:
            self._context.added(item, turn)
            self.line.add(item.pop("type"), ts, **item, turn=turn, topic=turn)


def _held_by(content: dict[str, Any] | None) -> str:
    """What a reply held, for its turn; what is not known may be calls."""
    if content is None or content.get("tool_calls"):
        return "tools"
    return "text" if content.keys() - {"thinking_chars"} else "nothing"


def wire_usage(tokens: Row) -> Row | None:
    """The wire's usage; None where nothing was counted: no reading, never a load of 0."""
    found = {name: count_at(tokens, key) for key, name in _USAGE}
    if not found["input"]:
        return None
    return {"dialect": "gemini", **{k: v for k, v in found.items() if v is not None}}
