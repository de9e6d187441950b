"""Codex rollouts (``~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<thread>.jsonl``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ctxhealth.readers.codex.compactions import Compactions
from ctxhealth.readers.codex.context import Context
from ctxhealth.readers.codex.endings import Endings
from ctxhealth.readers.codex.failures import failure_of
from ctxhealth.readers.codex.items import (
    is_output,
    item_id,
    items_of,
    mark_of,
    source_parent,
)
from ctxhealth.readers.codex.replies import Replies
from ctxhealth.readers.codex.tasks import Tasks
from ctxhealth.readers.codex.usage import Counts
from ctxhealth.readers.single import LONG_MS, SingleChatReader
from ctxhealth.readers.sizes import no_result
from ctxhealth.readers.timeline import Part
from ctxhealth.readers.values import Row, dict_at, list_at, one_line, text_at, word_at

_TITLE = 120
_ROWS = frozenset(
    {
        "session_meta", "turn_context", "response_item", "event_msg", "compacted",
        "token_usage_record", "world_state",
    }
)  # fmt: skip


class Prompted(Part):
    """Small facts: the model that is named, whether there is a title, the last input's time.

    ``unsaid`` holds a user's item until the next row tells whether it was a prompt; the program
    adds others in the user's name.
    """

    kept = ("model", "titled", "before", "unsaid")

    def __init__(self) -> None:
        self.model: str | None = None
        self.titled = False
        self.before = 0
        self.unsaid: list[list[Any]] = []


class CodexReader(SingleChatReader):
    """Load is the input of the newest reply that was sent for the chat itself."""

    format: ClassVar[str] = "codex"
    agent: ClassVar[str] = "codex"
    runtime: ClassVar[str] = "codex"

    def __init__(self, name: str = "session", **options: Any) -> None:
        super().__init__(name, **options)
        self._facts = Prompted()
        self._context = Context()
        self._counts = Counts()
        self._tasks = Tasks(self.line)
        self._replies = Replies(self.line, self._context, self._tasks)
        self._compactions = Compactions(self.line, self._context, self._tasks)
        self._endings = Endings(
            self.line, self._context, self._tasks, self._replies, self._compactions
        )

    @staticmethod
    def is_row(value: Row) -> bool:
        return value.get("type") in _ROWS and isinstance(value.get("payload"), dict)

    @property
    def parts(self) -> Mapping[str, Part]:
        return {
            "facts": self._facts, "context": self._context, "counts": self._counts,
            "tasks": self._tasks, "replies": self._replies, "compactions": self._compactions,
        }  # fmt: skip

    @property
    def waiting(self) -> bool:
        return super().waiting or self._replies.group is not None or bool(self._facts.unsaid)

    def quiet(self, ts: int, idle_ms: int) -> None:
        self._say(prompt=False)
        self._replies.settle(idle_ms, LONG_MS)
        if idle_ms >= LONG_MS:
            self._compactions.resolve()

    def take_row(self, row: Row, kind: str, ts: int) -> None:
        payload = dict_at(row, "payload")
        if kind == "session_meta":
            self._meta(payload, ts)
            return
        if not self._opened:
            self.open(None, ts)
        if kind == "response_item":
            self._item(payload, ts)
        elif kind == "event_msg":
            self._event(payload, text_at(payload, "type") or "", ts)
        elif kind == "token_usage_record":
            usage = self._counts.record(payload)
            self._say(prompt=False)
            response = word_at(payload, "response_id")
            self._replies.usage(usage, response, ts, self._facts.before)
        elif kind == "compacted":
            self._compacted(payload, ts)
        elif kind == "turn_context":
            self._turn_context(payload, ts)

    # -- rows by type

    def _meta(self, payload: Row, ts: int) -> None:
        # A forked thread's file repeats the row of the thread that it came from.
        if self._opened:
            return
        parent = source_parent(payload)
        self._tasks.kind = "user" if parent is None else "task"
        labels = {
            "project": (text_at(payload, "cwd") or "")
            .replace("\\", "/")
            .rstrip("/")
            .split("/")[-1],
            "branch": text_at(dict_at(payload, "git"), "branch") or "",
            "version": text_at(payload, "cli_version") or "",
        }
        self.open(
            text_at(payload, "id") or text_at(payload, "session_id"), ts, parent=parent,
            provider=word_at(payload, "model_provider"),
            labels={key: value[:200] for key, value in labels.items() if value} or None,
        )  # fmt: skip

    def _turn_context(self, payload: Row, ts: int) -> None:
        self._say(prompt=False)
        self._replies.input()
        if self._tasks.task is not None:
            self._tasks.task["context"] = True
        model = word_at(payload, "model")
        if model is not None and model != self._facts.model:
            self._facts.model = self._replies.model = model
            self.line.add("chat.updated", ts, model=model)

    def _item(self, payload: Row, ts: int) -> None:
        self._say(prompt=False)
        id = item_id(payload) or f"r{self.counts['rows']}"
        self._compactions.resolve()
        if is_output(payload):
            self._replies.item(payload, id, ts, self._facts.before)
            return
        self._replies.input()
        self._facts.before = ts
        items = items_of(payload, id)
        if payload.get("type") == "message" and payload.get("role") == "user":
            self._facts.unsaid = [[item, mark_of(payload), ts] for item in items]
        else:
            self._add([[item, mark_of(payload), ts] for item in items])

    def _event(self, payload: Row, kind: str, ts: int) -> None:
        if kind == "token_count":
            self._token_count(payload, ts)
        elif kind == "user_message":
            self._prompt(text_at(payload, "message") or "", ts)
        elif kind == "item_completed":
            self._completed(dict_at(payload, "item"), ts)
        elif kind in ("task_started", "turn_started"):
            self._started(payload, ts)
        elif kind in ("task_complete", "turn_complete"):
            self._finished(payload, ts)
        elif kind == "turn_aborted":
            self._aborted(ts)
        elif kind == "error":
            self._say(prompt=False)
            self._endings.failed(failure_of(payload), ts, self._facts.before)
        else:
            self._aside(payload, kind, ts)

    def _completed(self, item: Row, ts: int) -> None:
        if item.get("type") == "UserMessage":
            words = [text_at(part, "text") or "" for part in list_at(item, "content")
                     if isinstance(part, dict)]  # fmt: skip
            self._prompt("\n".join(words), ts)
        else:
            self._say(prompt=False)
            self._replies.input()

    def _aside(self, payload: Row, kind: str, ts: int) -> None:
        if kind == "thread_name_updated":
            name = text_at(payload, "thread_name")
            if name is not None:
                self._facts.titled = True
                self.line.add("chat.updated", ts, title=one_line(name, _TITLE))
        elif kind == "stream_error":
            words = one_line(text_at(payload, "message") or "an error", 300)
            text = f"The provider failed and is asked again: {words}"
            self.line.add("note", ts, level="warning", code="api_retry", text=text)
        elif kind == "thread_rolled_back":
            text = "The user took back turns: what they held is no longer in the context."
            self.line.add("note", ts, level="info", code="rolled_back", text=text)

    # -- counts

    def _token_count(self, payload: Row, ts: int) -> None:
        found = self._counts.token_count(payload)
        self._window(found.window, ts)
        if found.usage is not None:
            self._replies.usage(found.usage, None, ts, self._facts.before)
        elif found.estimate is not None:
            self._estimate(found.estimate, ts)

    def _estimate(self, tokens: int, ts: int) -> None:
        """The client's own guess: told beside a compaction, or as a gauge that cannot be right.

        It is never a load. One that exceeds the window is told, as it is what the user was shown.
        """
        self.counts["estimates"] += 1
        window = self._counts.window
        if window is not None and tokens > window:
            self._compactions.resolve()
            self.line.add("usage.update", ts, used=tokens, size=window)
        else:
            self._compactions.estimated(tokens)

    def _window(self, window: int | None, ts: int) -> None:
        if window is not None:
            self.line.add("chat.updated", ts, window=window)

    # -- tasks and turns

    def _started(self, payload: Row, ts: int) -> None:
        self._say(prompt=False)
        self._replies.close()
        self._compactions.resolve()
        if self._tasks.turn is not None:
            # Its end is not in the file: the program was closed, or killed.
            self._tasks.end("cancelled", ts)
        self._tasks.started(text_at(payload, "turn_id"))
        self._window(self._counts.new_window(payload), ts)
        self._facts.before = ts

    def _prompt(self, words: str, ts: int) -> None:
        self._replies.input()
        self._compactions.resolve()
        if not self._facts.titled and words.strip():
            self._facts.titled = True
            self.line.add("chat.updated", ts, title=one_line(words, _TITLE))
        if self._tasks.prompt(ts):
            self._close_calls(ts)
        self._facts.before = ts
        self._say(prompt=True)

    def _finished(self, payload: Row, ts: int) -> None:
        self._say(prompt=False)
        error = dict_at(payload, "error")
        if error:
            self._endings.failed(failure_of(error), ts, self._facts.before)
            return
        self._replies.close()
        self._compactions.resolve(task_ends=True)
        said = (text_at(payload, "last_agent_message") or "").strip()
        self._tasks.end("answered" if said else "silent", ts)

    def _aborted(self, ts: int) -> None:
        self._say(prompt=False)
        self._replies.close()
        self._compactions.resolve()
        self._tasks.end("cancelled", ts)

    # -- compactions and items

    def _compacted(self, payload: Row, ts: int) -> None:
        self._say(prompt=False)
        summary = self._replies.summary(word_at(payload, "compaction_response_id"))
        self._counts.compacted()
        id = f"r{self.counts['rows']}"
        self._compactions.compacted(payload, id, ts, summary, self._replies.said)
        self._facts.before = ts

    def _say(self, *, prompt: bool) -> None:
        """Tell the user's item that was held; a prompt belongs to the turn that it began."""
        unsaid, self._facts.unsaid = self._facts.unsaid, []
        if unsaid and not prompt:
            for entry in unsaid:
                entry[0].setdefault("name", "added by the program")
        self._add(unsaid)

    def _add(self, entries: list[list[Any]]) -> None:
        turn = self._tasks.turn
        for item, mark, ts in entries:
            self._context.added(item, mark)
            self.line.add(item.pop("type"), ts, **item, turn=turn, topic=turn)

    def _close_calls(self, ts: int) -> None:
        """Calls of an earlier turn that never got a result: the program answers them itself."""
        self._add([[no_result(call), "", ts] for call in list(self._context.calls)])
