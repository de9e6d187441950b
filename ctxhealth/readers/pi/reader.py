"""pi sessions (``~/.pi/agent/sessions/<folder>/<time>_<session>.jsonl``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ctxhealth.readers.base import Event
from ctxhealth.readers.pi.compactions import finished
from ctxhealth.readers.pi.context import Context
from ctxhealth.readers.pi.failures import failure_of
from ctxhealth.readers.pi.items import content_of, items_of, words_of
from ctxhealth.readers.pi.turns import Turns
from ctxhealth.readers.single import LONG_MS, SingleChatReader
from ctxhealth.readers.sizes import no_result
from ctxhealth.readers.timeline import Part
from ctxhealth.readers.times import millis
from ctxhealth.readers.values import Row, count_at, dict_at, one_line, text_at, word_at

_TITLE = 120
_USAGE = (
    ("input", "input"), ("output", "output"), ("cacheRead", "cache_read"),
    ("cacheWrite", "cache_write"), ("reasoning", "reasoning"),
)  # fmt: skip
_SUMMARIES = ("branch_summary", "custom_message")


class Facts(Part):
    """The model that is named, whether there is a title, whether the last request overflowed.

    ``header`` waits for the row behind it: a branched session is younger than the rows that it
    took along, and its chat is as old as the first of them.
    """

    kept = ("header", "model", "titled", "overflow")

    def __init__(self) -> None:
        self.header: list[Any] | None = None
        self.model: list[str | None] = [None, None]
        self.titled = False
        self.overflow = False


class PiReader(SingleChatReader):
    """One row is one reply with its usage, whose parts are disjoint whatever the provider."""

    format: ClassVar[str] = "pi"
    agent: ClassVar[str] = "pi"
    runtime: ClassVar[str] = "pi"

    def __init__(self, name: str = "session", **options: Any) -> None:
        super().__init__(name, **options)
        self._facts = Facts()
        self._context = Context()
        self._turns = Turns(self.line)

    @staticmethod
    def is_row(value: Row) -> bool:
        return isinstance(value.get("type"), str) and isinstance(value.get("timestamp"), str)

    @property
    def parts(self) -> Mapping[str, Part]:
        return {"facts": self._facts, "context": self._context, "turns": self._turns}

    @property
    def waiting(self) -> bool:
        turn = self._turns.turn
        return super().waiting or (turn is not None and turn["error"] is not None)

    def quiet(self, ts: int, idle_ms: int) -> None:
        if idle_ms >= LONG_MS:
            self._turns.settled(ts)

    def take_row(self, row: Row, kind: str, ts: int) -> None:
        if kind == "session":
            if not self._opened and self._facts.header is None:
                facts = {key: text_at(row, key) for key in ("id", "cwd", "modelId", "provider")}
                self._facts.header = [facts, ts]
                self._context.entry({})
            return
        self._begin(ts)
        if not self._context.entry(row):
            text = "The session went back to an earlier point and on from there."
            self.line.add("note", ts, level="info", code="branched", text=text)
        id = text_at(row, "id") or f"e{self._context.number}"
        if kind == "message":
            self._message(dict_at(row, "message"), id[:20], ts)
        elif kind == "compaction":
            self._compaction(row, id[:20], ts)
        elif kind == "model_change":
            self._model(word_at(row, "modelId"), word_at(row, "provider"), ts)
        elif kind == "session_info":
            self._title(text_at(row, "name") or "", ts)
        elif kind in _SUMMARIES:
            role = "branchSummary" if kind == "branch_summary" else "custom"
            self._add(items_of({**row, "role": role}, id[:20]), ts)

    # -- rows by type

    def finish(self) -> list[Event]:
        if self._facts.header is not None:
            self._begin(self._facts.header[1])
        return super().finish()

    def _begin(self, ts: int) -> None:
        """Open the chat with what its first row said."""
        if self._opened:
            return
        row, at = self._facts.header or [{}, ts]
        self._facts.header = None
        ts = min(ts, at)
        folder = (text_at(row, "cwd") or "").replace("\\", "/").rstrip("/")
        project = folder.split("/")[-1][:200]
        self.open(text_at(row, "id"), ts, labels={"project": project} if project else None)
        self._model(word_at(row, "modelId"), word_at(row, "provider"), ts)

    def _model(self, model: str | None, provider: str | None, ts: int) -> None:
        if model is None or [model, provider] == self._facts.model:
            return
        self._facts.model = [model, provider]
        self.line.add("chat.updated", ts, model=model, provider=provider)

    def _title(self, words: str, ts: int) -> None:
        if words.strip():
            self._facts.titled = True
            self.line.add("chat.updated", ts, title=one_line(words, _TITLE))

    def _message(self, message: Row, id: str, ts: int) -> None:
        role = text_at(message, "role")
        if role == "assistant":
            self._reply(message, id, ts)
            return
        if role == "user":
            self._prompt(message, id, ts)
        elif role == "toolResult":
            self._turns.result(ts)
        self._add(items_of(message, id), ts)

    def _prompt(self, message: Row, id: str, ts: int) -> None:
        if not self._facts.titled:
            self._title(words_of(message), ts)
        if self._turns.prompt(id, ts):
            self._facts.overflow = False
            # Calls of an earlier turn that never got a result: the program does without.
            self._add([no_result(call) for call in list(self._context.calls)], ts)

    def _reply(self, message: Row, id: str, ts: int) -> None:
        finish = word_at(message, "stopReason")
        self._model(word_at(message, "model"), word_at(message, "provider"), ts)
        # The message's own time is when its request left; the row is written at its end.
        sent = min(millis(message.get("timestamp")) or ts, ts)
        self._turns.ensure(id, sent)
        request = f"r-{id}"
        self.line.add("request.sent", sent, request=request)
        items = items_of(message, id)
        if finish in ("error", "aborted"):
            self._failed(message, request, items, ts, cancelled=finish == "aborted")
            return
        usage, content = wire_usage(dict_at(message, "usage")), content_of(items)
        self.line.add(
            "model.replied", ts, request=request, usage=usage, finish=finish, content=content,
            model=self._facts.model[0],
        )  # fmt: skip
        if usage is not None:
            self._context.counted(usage)
        self._facts.overflow = False
        self._add(items, ts)
        held = "tools" if content.get("tool_calls") else "text"
        self._turns.replied(held if set(content) - {"thinking_chars"} else "nothing", finish, ts)

    def _failed(
        self, message: Row, request: str, items: list[Event], ts: int, *, cancelled: bool
    ) -> None:
        """The request failed or was stopped: its usage of 0 is no load, and no drop."""
        words = text_at(message, "errorMessage") or ("aborted" if cancelled else "no reason given")
        told = {"error": "cancelled", "detail": words[:2_000]} if cancelled else failure_of(words)
        self.line.add("model.failed", ts, request=request, **told)
        for item in items:
            # Such a reply is not sent on: the calls in it wait for no result.
            item.pop("calls", None)
        self._add(items, ts)
        self._facts.overflow = told["error"] == "overflow"
        if cancelled:
            self._context.calls.clear()
            self._turns.end("cancelled", ts)
        else:
            self._turns.failed(words)

    def _compaction(self, row: Row, id: str, ts: int) -> None:
        before = self._context.before(count_at(row, "tokensBefore"))
        reactive, self._facts.overflow = self._facts.overflow, False
        told = finished(row, id, before, reactive=reactive)
        removed = self._context.compacted(row)
        self.line.add("compaction.finished", ts, **told, removed=removed)
        if removed is None:
            order = [{"id": item, "role": "user", "kind": "text"} for item in self._context.items]
            self.line.add("history.snapshot", ts, revision=told["attempt"], order=order[-1_000:])
        self._add(items_of({**row, "role": "compactionSummary"}, id), ts)

    def _add(self, items: list[Event], ts: int) -> None:
        turn = self._turns.id
        for item in items:
            self._context.added(item)
            self.line.add(item.pop("type"), ts, **item, turn=turn, topic=turn)


def wire_usage(usage: Row) -> Row | None:
    """The wire's usage; None where nothing was counted: no reading, never a load of 0.

    pi tells every provider's cached tokens apart from the input, as Anthropic does.
    """
    found = {name: count_at(usage, key) for key, name in _USAGE}
    if not any(found[name] for name in ("input", "cache_read", "cache_write")):
        return None
    return {"dialect": "anthropic", **{k: v for k, v in found.items() if v is not None}}
