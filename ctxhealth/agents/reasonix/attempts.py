"""Compactions of one session, from three kinds of frames that come in either order.

A success says ``context_maintenance`` before ``compaction_done``, a failure after it, and a
provider's refusal never: then the reason stands only in the answer to whoever asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctxhealth.agents.reasonix.failures import is_nothing_foldable, summarizer_error

Event = dict[str, Any]
_TRIGGERS = {"pressure": "proactive", "manual": "manual", "overflow": "reactive"}
_STEPS = {
    "summary": "summary", "prune": "prune", "snip": "large_message",
    "native_tool_clear": "native", "truncate": "evict",
}  # fmt: skip
_TELEMETRY = re.compile(r"(\w+)=(\d+)")
# Between an end without a word and the receipt that may follow lie milliseconds.
GRACE_MS = 1_500
LEASE_S = 900


class Attempts:
    """``open`` is the attempt that runs, as kept over a restart; ``last`` the one that ended."""

    def __init__(self, kept: Mapping[str, Any] | None = None) -> None:
        self.open: dict[str, Any] | None = dict(kept) if kept else None
        self.last: Event | None = None
        self.ended = 0
        # What Reasonix answered to our own request, in case no receipt comes.
        self.answer: str | None = None

    def started(self, compaction: Mapping[str, Any], turn: str | None, now: int) -> list[Event]:
        ends = self.finished({}, now) if self.open else []
        word = str(compaction.get("trigger") or "")
        self.open = {
            "attempt": f"compaction-{now}", "trigger": _TRIGGERS.get(word, "manual"),
            "at": now, "calls": 0, "input": 0, "output": 0,
        }  # fmt: skip
        phase = "mid_turn" if turn else "between_turns"
        return [*ends, {
            "type": "compaction.started", "attempt": self.open["attempt"],
            "trigger": self.open["trigger"], "scope": "prompt", "phase": phase,
            "lease_s": LEASE_S,
        }]  # fmt: skip

    def summarized(self, usage: Mapping[str, Any]) -> None:
        """One answered summarizer call."""
        if self.open is not None:
            self.open["calls"] += 1
            self.open["input"] += _count(usage.get("promptTokens")) or 0
            self.open["output"] += _count(usage.get("completionTokens")) or 0

    def telemetry(self, detail: str) -> None:
        """The numbers of a summary that came, whether or not it was installed."""
        if self.open is None:
            return
        said = {key: int(value) for key, value in _TELEMETRY.findall(detail)}
        self.open["before"] = said.get("src")
        self.open["calls"] = max(self.open["calls"], said.get("reqs", 0))

    def receipt(self, maintenance: Mapping[str, Any], now: int) -> list[Event]:
        """``context_maintenance``: without an open attempt it is one by itself, without a call."""
        if self.open is None:
            begun = self.started({"trigger": maintenance.get("trigger")}, None, now)
            return [*begun, *self.finished(maintenance, now)]
        if self.open.get("done") or maintenance.get("status") != "applied":
            return self.finished(maintenance, now)
        self.open["receipt"] = dict(maintenance)
        return []

    def done(self, compaction: Mapping[str, Any], now: int) -> list[Event]:
        """``compaction_done``: with nothing in it, it failed, and the receipt may follow."""
        if self.open is None:
            return []
        if self.open.get("receipt") or compaction.get("messages"):
            return self.finished(self.open.get("receipt") or {"status": "applied"}, now)
        self.open["done"] = now
        return []

    def due(self, now: int) -> bool:
        """Whether an attempt ended so long ago that no receipt will come."""
        if self.open is None:
            return False
        ended, at = self.open.get("done"), int(self.open["at"])
        return bool(now - int(ended) >= GRACE_MS if ended else now - at >= LEASE_S * 1000)

    def finished(self, receipt: Mapping[str, Any], now: int) -> list[Event]:
        """End the open attempt by ``receipt``, or without one where its end was not seen."""
        attempt, self.open = self.open, None
        if attempt is None:
            return []
        said = str(receipt.get("reason") or self.answer or "")
        status = str(receipt.get("status") or ("failed" if attempt.get("done") else "unseen"))
        before = _first(attempt.get("before"), _count(receipt.get("inputTokens")))
        nothing = is_nothing_foldable(said)
        step = _STEPS.get(str(receipt.get("action")))
        after = _after(status, receipt, before)
        event = {
            "type": "compaction.finished", "attempt": attempt["attempt"], "reported": status,
            "trigger": attempt["trigger"], "scope": "prompt", "before": before, "after": after,
            "reason": "no_foldable_region" if nothing else said or None,
            "said": said if nothing else None, "ms": now - attempt["at"],
            "summarizer": _summarizer(attempt, said, status, step),
            "steps": [{"step": step, "before": before, "after": after}]
            if step and status == "applied" else None,
        }  # fmt: skip
        self.last, self.answer = event, None
        self.ended += 1
        return [event]


def _after(status: str, receipt: Mapping[str, Any], before: int | None) -> int | None:
    """What is not installed changes nothing; an end that was not seen says nothing."""
    if status == "applied":
        return _count(receipt.get("resultTokens"))
    return None if status == "unseen" else before


def _summarizer(
    attempt: Mapping[str, Any], said: str, status: str, step: str | None
) -> dict[str, Any] | None:
    if status == "unseen" or (step == "summary" and status == "applied" and not attempt["calls"]):
        return None
    error = None if status == "applied" else summarizer_error(said)
    if not attempt["calls"]:
        # A provider's refusal leaves no usage behind: how often it was asked is not known.
        unknown = error is not None or not (said or status == "applied")
        return _failure(error, said) or None if unknown else {"calls": 0}
    return {
        "calls": attempt["calls"], "input": attempt["input"], "output": attempt["output"],
        **_failure(error, said),
    }  # fmt: skip


def _failure(error: str | None, said: str) -> dict[str, Any]:
    return {"error": error, "detail": said} if error is not None else {}


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
