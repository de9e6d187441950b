"""Compactions: those that a ``compacted`` row shows, and those known by how their task ended."""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.codex.context import Context
from ctxhealth.readers.codex.items import (
    is_encrypted_summary,
    item_id,
    items_of,
    mark_of,
    message_text,
    words_mark,
)
from ctxhealth.readers.codex.tasks import Tasks
from ctxhealth.readers.timeline import Part, Timeline
from ctxhealth.readers.values import Row, list_at, text_at

# How the summary is introduced to the model, on one line; the summary itself follows.
_FRAME = "Another language model started to solve this problem"


class Compactions(Part):
    """``count`` of those that a row shows; ``open``: the newest one's task is not known yet."""

    kept = ("count", "open")

    def __init__(self, line: Timeline, context: Context, tasks: Tasks) -> None:
        self._line, self._context, self._tasks = line, context, tasks
        self.count = 0
        self.open = False

    def compacted(
        self, payload: Row, id: str, ts: int, summary: dict[str, Any] | None, said: str
    ) -> None:
        """The history was replaced. What is left is unknown until a reply reports it.

        ``summary`` is the reply that was asked for, ``said`` stands for the chat's last words.
        """
        self.resolve()
        self.count += 1
        attempt = (text_at(payload, "window_id") or f"c-{id}")[:200]
        common = {
            "attempt": attempt, "trigger": "proactive", "scope": "prompt",
            "before": self._context.total, "phase": self._tasks.phase,
        }  # fmt: skip
        begun = summary["sent"] if summary is not None else ts
        self._line.add("compaction.started", min(begun, ts), **common)
        self._line.hold_last()
        self.open = True
        history = [entry for entry in list_at(payload, "replacement_history") if _is_item(entry)]
        left = self._context.compacted(history)
        del common["phase"]
        self._line.add(
            "compaction.finished", ts, **common, reported="compacted", removed=left.removed,
            summarizer=_summarizer(summary), emptied=_is_blank(payload, history, summary, said),
        )  # fmt: skip
        if left.removed is None:
            order = [{"id": id, "role": "user", "kind": "text"} for id in self._context.items]
            self._line.add("history.snapshot", ts, revision=attempt, order=order[-1_000:])
        self._add(left.fresh, _words(payload), history, id, ts)

    def estimated(self, tokens: int) -> bool:
        """The client's guess of what is left goes along as stated; False where none is open."""
        if not self.open or self._line.hold is None:
            return False
        self._line.queue[self._line.hold + 1]["stated_after"] = tokens
        return True

    def resolve(self, *, task_ends: bool = False) -> None:
        """The row behind a compaction tells whether it stood in a turn or was asked for."""
        hold = self._line.hold
        if self.open and hold is not None and task_ends and not self._prompted:
            started, finished = self._line.queue[hold : hold + 2]
            started["trigger"] = finished["trigger"] = "manual"
            started["phase"] = "between_turns"
        self.open = False
        self._line.release()

    def failed(
        self, ts: int, reason: str, error: str, *, inferred: bool, summary: dict[str, Any] | None
    ) -> None:
        """An attempt that left only the error with which its task ended."""
        task = self._tasks.task
        manual = task is None or not task["prompted"]
        before = self._context.total
        common = {
            "attempt": f"failed-{task['id'] if task else ts}"[:200], "scope": "prompt",
            "trigger": "manual" if manual else "proactive", "before": before,
        }  # fmt: skip
        phase = "between_turns" if manual else self._tasks.phase
        self._line.add("compaction.started", ts, **common, phase=phase)
        told = reason
        if inferred:
            told = f"Inferred: the task ended before its first request with this error: {reason}"
        part = {**_summarizer(summary), "error": error, "detail": reason[:1_000]}
        # A failed compaction of this program leaves the history as it was.
        self._line.add(
            "compaction.finished", ts, **common, after=before, reported="failed",
            reason=told[:4_000], summarizer=part, inferred=inferred or None,
        )  # fmt: skip

    @property
    def _prompted(self) -> bool:
        return self._tasks.task is not None and bool(self._tasks.task["prompted"])

    def _add(self, fresh: list[Row], words: str, history: list[Row], id: str, ts: int) -> None:
        """What stands in the new history and was not in the old one: above all the summary."""
        if not history and words:
            fresh = [{"type": "message", "role": "user", "content": words}]
        for index, entry in enumerate(fresh):
            for item in items_of(entry, item_id(entry) or f"{id}-{index}"):
                if words and message_text(entry).rstrip().endswith(words[-400:]):
                    item["kind"] = "summary"
                self._context.added(item, mark_of(entry))
                self._line.add(item.pop("type"), ts, **item)


def _is_item(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("type"), str)


def _words(payload: Row) -> str:
    """The summary's own text, without its frame."""
    text = text_at(payload, "message") or ""
    if text.startswith(_FRAME):
        text = text.partition("\n")[2]
    return text.strip()


def _is_blank(
    payload: Row, history: list[Row], summary: dict[str, Any] | None, said: str
) -> bool | None:
    """Whether nothing stands where the history was, although it is recorded as a success.

    An empty summary is not seen as one by the client: it takes the chat's last words instead.
    A remote compaction has no text by design; its content is encrypted.
    """
    if any(is_encrypted_summary(entry) for entry in history):
        return None
    words = _words(payload)
    if not words:
        return True
    if summary is not None:
        return True if summary["usage"].get("output") == 0 else None
    return True if said and words_mark(words) == said else None


def _summarizer(summary: dict[str, Any] | None) -> dict[str, Any]:
    # There was one call at least: its answer is the summary, or the error.
    part: dict[str, Any] = {"calls": 1}
    if summary is not None:
        usage = summary["usage"]
        part |= {key: usage[key] for key in ("input", "output") if key in usage}
    return part
