"""The rows of one chat -> its events."""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.claude_code import texts
from ctxhealth.readers.claude_code.compactions import Compactions
from ctxhealth.readers.claude_code.context import Context
from ctxhealth.readers.claude_code.failures import Failures
from ctxhealth.readers.claude_code.items import attachment_item, items_of, result_ids
from ctxhealth.readers.claude_code.replies import LONG_MS, Replies, request_name
from ctxhealth.readers.claude_code.rows import plain_text
from ctxhealth.readers.claude_code.stay import Stay, WindowOf
from ctxhealth.readers.claude_code.turns import Turns
from ctxhealth.readers.seen import Seen
from ctxhealth.readers.sizes import no_result
from ctxhealth.readers.timeline import Part, Timeline
from ctxhealth.readers.values import Row, dict_at, one_line, text_at

_TITLE = 120
_END_MARKS = ("turn_duration", "stop_hook_summary")


class ChatRows(Part):
    """One chat of a file: the session itself, or a sub-agent in it."""

    kept = ("hint", "titled", "opened", "orphans", "before")

    def __init__(
        self, chat: str, parent: str | None = None, window_of: WindowOf | None = None
    ) -> None:
        self.chat, self.parent = chat, parent
        self.line = Timeline(chat)
        self.context = Context()
        self.turns = Turns(self.line, "user" if parent is None else "task")
        self.stay = Stay(self.line, window_of)
        self.replies = Replies(self.line, self.context, self.turns, self.stay)
        self.compactions = Compactions(self.line, self.context, self.turns)
        self.failures = Failures(self.line, self.turns, self.replies, self.compactions, self.stay)
        self.hint: str | None = None
        self.titled = False
        self.opened = False
        self.orphans = 0
        self.before = 0

    def open(self, row: Row, ts: int, title: str | None) -> None:
        """The first row: what it says about the chat."""
        self.opened = True
        self.titled = title is not None
        labels = {
            "runtime": "claude-code",
            "project": (text_at(row, "cwd") or "").replace("\\", "/").rstrip("/").split("/")[-1],
            "branch": text_at(row, "gitBranch") or "",
            "version": text_at(row, "version") or "",
        }
        self.line.add(
            "chat.opened", ts, title=title, parent=self.parent,
            labels={key: value[:200] for key, value in labels.items() if value} or None,
        )  # fmt: skip

    def title(self, text: str, ts: int) -> None:
        self.titled = True
        self.line.add("chat.updated", ts, title=one_line(text, _TITLE))

    def row(self, row: Row, uuid: str, ts: int) -> None:
        """One row that belongs to this chat, in the order of the file."""
        kind = row["type"]
        if kind == "assistant":
            self._assistant(row, uuid, ts)
        elif kind == "user":
            self._user(row, uuid, ts)
        elif kind == "system":
            self._system(row, uuid, ts)
        elif kind == "attachment":
            self._attachment(row, uuid, ts)
        if kind in ("user", "assistant", "attachment"):
            self.before = ts
        if self.line.crowded:
            self.settle(ts, LONG_MS)

    def request(self, row: Row, ts: int, seen: Seen) -> None:
        """A request of the main loop; those of helpers (titles, summaries) are not its load."""
        source = text_at(row, "querySource") or ""
        id = text_at(row, "id")
        main_loop = source == "sdk" or source.startswith("repl_main")
        if id is not None and main_loop and not seen.again(f"request:{id}"):
            self.replies.close()
            self.replies.request(id[:200], ts)

    def billed(self, row: Row, ts: int) -> None:
        self.replies.close()
        # The turn was retried after an empty reply and is over: the retry was empty too.
        turn = self.turns.turn
        if turn is not None and turn["empty"] and self.replies.pending is not None:
            self.replies.empty(ts)
        self.turns.marked(ts, bool(self.context.calls))
        self.stay.billed(row, self.replies.model, ts)

    @property
    def waiting(self) -> bool:
        """Whether something read is not told yet: ``settle`` would."""
        turn = self.turns.turn
        ending = turn is not None and turn["held"] == "text" and not self.context.calls
        return self.replies.group is not None or bool(self.line.queue) or ending

    def settle(self, ts: int, idle_ms: int) -> None:
        """Nothing more came for ``idle_ms``."""
        self.replies.settle(idle_ms)
        if idle_ms >= LONG_MS:
            self.line.release()
            self.turns.settled(ts, bool(self.context.calls))

    def end(self, ts: int) -> None:
        """The sub-agent handed its result back."""
        self.replies.close()
        self.line.release()
        self.replies.unresolved("other", "no reply to this request is in the transcript", ts)
        self.turns.end("answered" if self.replies.count else "stopped", ts)
        self.line.add("chat.closed", ts, reason="the sub-agent returned")

    def snapshot(self) -> dict[str, Any]:
        parts = {name: part.snapshot() for name, part in self._parts()}
        return {**super().snapshot(), "chat": self.chat, "parent": self.parent, "parts": parts}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        for name, part in self._parts():
            part.restore(state["parts"][name])

    def _parts(self) -> list[tuple[str, Part]]:
        return [
            ("line", self.line), ("context", self.context), ("turns", self.turns),
            ("replies", self.replies), ("compactions", self.compactions), ("stay", self.stay),
        ]  # fmt: skip

    # -- rows by type

    def _assistant(self, row: Row, uuid: str, ts: int) -> None:
        if text_at(dict_at(row, "message"), "model") == "<synthetic>" or row.get(
            "isApiErrorMessage"
        ):
            # No model spoke: neither a load of 0 nor an empty reply.
            self.replies.close()
            if row.get("isApiErrorMessage"):
                self.failures.api_error(row, uuid, ts, self.before or ts)
            else:
                self._placeholder(row, uuid, ts)
            return
        group = self.replies.group
        if group is not None and group["id"] != text_at(dict_at(row, "message"), "id"):
            self.replies.close()
        self._name_model(dict_at(row, "message"), ts)
        self.replies.row(row, uuid, ts, self.before or ts)

    def _placeholder(self, row: Row, uuid: str, ts: int) -> None:
        turn = self.turns.turn
        if turn is not None and turn["empty"] and plain_text(row).startswith(texts.NO_REPLY):
            # Written on resume, because the turn before it ended without any reply.
            if self.replies.pending is not None:
                self.replies.empty(ts)
            self.turns.end("silent", ts)
        self.line.add("model.replied", ts, request=request_name(uuid), synthetic=True)

    def _user(self, row: Row, uuid: str, ts: int) -> None:
        answers = result_ids(row)
        if row.get("isCompactSummary"):
            self.compactions.summary(row)
            self._add(row, uuid, ts, kind="summary")
        elif answers:
            self._results(row, uuid, ts, answers)
        else:
            self._said(row, uuid, ts)

    def _said(self, row: Row, uuid: str, ts: int) -> None:
        kind = texts.kind_of(row)
        if kind == "empty_retry":
            self.replies.close()
            self.replies.empty(ts)
        elif kind == "interrupted":
            self.replies.close()
            self.replies.unresolved("cancelled", "the user interrupted", ts)
            self.context.calls.clear()
            self.turns.end("cancelled", ts)
        elif kind == "command":
            self.replies.close()
            self.turns.command_at = ts
        elif kind == "local":
            self.replies.close()
            reason = texts.failed_compact(plain_text(row))
            if reason is not None:
                self.failures.compaction(uuid, ts, "manual", reason)
        elif kind in ("prompt", "notice"):
            self._prompt(row, uuid, ts, "user" if kind == "prompt" else "task")
        self._add(row, uuid, ts)

    def _prompt(self, row: Row, uuid: str, ts: int, kind: str) -> None:
        self.replies.close()
        self.replies.unresolved("cancelled", "another prompt came first", ts)
        if not self.titled and plain_text(row).strip():
            self.title(plain_text(row), ts)
        self.turns.prompt(uuid, ts, kind, bool(self.context.calls))
        # Calls of an earlier turn that never got a result are answered by the program itself.
        for call in list(self.context.calls):
            item = no_result(call)
            self.context.added(item)
            self.line.add(item.pop("type"), ts, **item)

    def _results(self, row: Row, uuid: str, ts: int, answers: list[str]) -> None:
        orphans = [id for id in answers if id[:200] not in self.context.calls]
        starting = not self.replies.count and self.replies.group is None
        if orphans and starting and not self.orphans:
            self.line.add(
                "note", ts, level="info", code="truncated_start", count=len(orphans),
                text="The file starts in the middle: a result whose call is not in it.",
            )  # fmt: skip
        self.orphans += len(orphans)
        self._add(row, uuid, ts, unpaired=set(orphans) if starting else set())

    def _add(
        self, row: Row, uuid: str, ts: int, *, kind: str | None = None,
        unpaired: set[str] | None = None,
    ) -> None:  # fmt: skip
        turn = self.turns.id
        for item in items_of(row, uuid, "user"):
            if kind is not None:
                item["kind"] = kind
            if unpaired and set(item.get("answers", ())) <= unpaired:
                item.pop("answers", None)
            self.context.added(item)
            self.line.add(item.pop("type"), ts, **item, turn=turn, topic=turn)

    def _attachment(self, row: Row, uuid: str, ts: int) -> None:
        attachment = dict_at(row, "attachment")
        if attachment.get("type") == "model":
            self.hint = text_at(dict_at(attachment, "identity"), "modelId")
        item = attachment_item(row, uuid)
        if item is not None:
            self.context.added(item)
            turn = self.turns.id
            self.line.add(item.pop("type"), ts, **item, turn=turn, topic=turn)

    def _system(self, row: Row, uuid: str, ts: int) -> None:
        kind = row.get("subtype")
        self.replies.close()
        if kind == "compact_boundary":
            self._boundary(row, uuid, ts)
        elif kind == "microcompact_boundary":
            # It clears old tool results in place and is no compaction: the next load tells.
            text = "Old tool results were cleared in place (microcompact)."
            self.line.add("note", ts, level="info", code="microcompact", text=text)
        elif kind == "local_command":
            reason = texts.failed_compact(text_at(row, "content") or "")
            command = text_at(dict_at(row, "commandRun"), "command")
            if reason is None and command == "compact" and _failed(row):
                reason = texts.command_output(text_at(row, "content") or "no reason given")
            if reason is not None:
                self.failures.compaction(uuid, ts, "manual", reason)
        elif kind == "api_error":
            self.failures.retry(row, ts)
        elif kind in _END_MARKS:
            self.turns.marked(ts, bool(self.context.calls))

    # -- what several rows share

    def _boundary(self, row: Row, uuid: str, ts: int) -> None:
        refused = self.replies.unresolved(
            "other", "no reply is in the transcript; a compaction followed", ts
        )
        automatic = text_at(dict_at(row, "compactMetadata"), "trigger") != "manual"
        load = self.context.load
        self.compactions.boundary(row, uuid, ts, after_refusal=refused)
        self.stay.known(automatic_at=load if automatic else None)

    def _name_model(self, message: Row, ts: int) -> None:
        said = text_at(message, "model")
        if said is None:
            return
        if self.hint is not None and self.hint.startswith(said):
            said = self.hint
        if said != self.replies.model:
            self.replies.model = said
            self.line.add("chat.updated", ts, model=said[:200])


def _failed(row: Row) -> bool:
    return text_at(dict_at(row, "commandOutcome"), "kind") == "failed"
