"""Compactions: those with a boundary row, and those known only by what failed."""

from __future__ import annotations

from typing import Any

from ctxhealth.readers.claude_code.context import Context
from ctxhealth.readers.claude_code.rows import plain_text
from ctxhealth.readers.claude_code.texts import SUMMARY_FRAME
from ctxhealth.readers.claude_code.turns import Turns
from ctxhealth.readers.errors import summarizer_error
from ctxhealth.readers.timeline import Part, Timeline
from ctxhealth.readers.values import Row, count_at, dict_at, short, text_at

_TRIGGERS = {"auto": "proactive", "manual": "manual"}
_NOTHING = ("Not enough messages",)
_CANCELLED = ("Compaction cancel",)


class Compactions(Part):
    """``count`` of those that a boundary shows, ``failed`` of those that an error shows."""

    kept = ("count", "failed")

    def __init__(self, line: Timeline, context: Context, turns: Turns) -> None:
        self._line, self._context, self._turns = line, context, turns
        self.count = 0
        self.failed = 0

    def boundary(self, row: Row, uuid: str, ts: int, *, after_refusal: bool) -> None:
        """A compaction that succeeded. What it left is unknown until the next reply reports it.

        ``postTokens`` counts the kept messages alone and is no load: it goes along as stated.
        """
        meta = dict_at(row, "compactMetadata")
        stated = count_at(meta, "preTokens", "preCompactTokenCount")
        attempt = f"c-{short(uuid)}"
        common = {
            "attempt": attempt, "trigger": _trigger(meta, after_refusal),
            "scope": "prompt", "before": self._context.before(stated),
        }  # fmt: skip
        ms = count_at(meta, "durationMs")
        self._line.release()
        if ms is not None:
            self._line.add("compaction.started", ts - ms, **common, phase=self._phase())
        removed = self._context.compacted(meta)
        self._line.add(
            "compaction.finished", ts, **common, reported="compact_boundary", ms=ms,
            summarizer={"calls": 1}, removed=removed, stated_before=stated,
            stated_after=count_at(meta, "postTokens"),
        )  # fmt: skip
        self._line.hold_last()
        if removed is None:
            self._line.add("history.snapshot", ts, revision=attempt, order=self._members())
        self.count += 1

    def summary(self, row: Row) -> None:
        """The summary row of the newest boundary: a blank one replaced the history by nothing."""
        body = plain_text(row).strip()
        blank = not body or body.startswith("Error generating summary")
        if body.startswith(SUMMARY_FRAME):
            blank = not body.partition("\n")[2].strip() and len(body) < 200
        hold = self._line.hold
        if blank and hold is not None:
            self._line.queue[hold]["emptied"] = True
        self._line.release()

    def failure(self, uuid: str, ts: int, trigger: str, reason: str) -> None:
        """An attempt of which only the error is in the transcript."""
        # When it began is not in the transcript: there is no start to tell, and no duration.
        self._line.add(
            "compaction.finished", ts, attempt=f"c-{short(uuid)}", trigger=trigger, scope="prompt",
            before=self._context.load, after=self._unchanged(), reported=_reported(reason),
            reason=reason[:4_000], summarizer=_summarizer(reason),
        )  # fmt: skip
        self.failed += 1

    def _unchanged(self) -> int | None:
        # A failed compaction of this program leaves the history as it was.
        return self._context.load

    def _phase(self) -> str:
        turn = self._turns.turn
        if turn is None:
            return "between_turns"
        return "mid_turn" if turn["replies"] else "pre_turn"

    def _members(self) -> list[dict[str, Any]]:
        kept = list(self._context.items)[-1_000:]
        return [{"id": id, "role": "user", "kind": "text"} for id in kept]


def _trigger(meta: Row, after_refusal: bool) -> str:
    stated = _TRIGGERS.get(text_at(meta, "trigger") or "auto", "proactive")
    return "reactive" if after_refusal and stated == "proactive" else stated


def _reported(reason: str) -> str:
    if reason.startswith(_NOTHING):
        return "nothing_to_compact"
    return "cancelled" if reason.startswith(_CANCELLED) else "failed"


def _summarizer(reason: str) -> dict[str, Any]:
    if reason.startswith(_NOTHING):
        return {"calls": 0}
    if reason.startswith(_CANCELLED):
        return {}
    # Its error is the answer to a call: there was one at least.
    return {"calls": 1, "error": summarizer_error(reason), "detail": reason[:1_000]}
