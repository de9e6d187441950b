"""The summary latch (a setting): a summarizer that failed on an input is not asked again for it.

QwenPaw asks it at every compaction, each time at the cost of its calls or of a minute's waiting.
While latched, compaction goes on without a summary, until the input has changed and grown.
"""

from __future__ import annotations

from typing import Any

from .attempts import Attempt
from .facts import window_of
from .sdk import engine
from .watch import Watch


class Latching:
    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def _policy(self, agent: Any) -> Any:
        # No ceiling: what lies behind it is compaction without a summary, not a lost request.
        return engine.LatchPolicy(window_of(agent))

    def allows(self, attempt: Attempt) -> bool:
        """Whether the summarizer may be called now."""
        watch = attempt.watch
        if not self.enabled or watch.latch is None:
            return True
        decision = self._policy(attempt.agent).may_attempt(
            watch.latch, key=attempt.held.revision, tokens=attempt.before, cause=_cause(attempt)
        )
        if decision.latch is None:
            self._cleared(watch, "input_changed")
        return bool(decision.allowed)

    def after(self, attempt: Attempt) -> None:
        if not self.enabled or not attempt.calls:
            return
        watch, error = attempt.watch, attempt.summarizer_error
        if error is None:
            if watch.latch is not None:
                self._cleared(watch, "success")
            return
        policy = self._policy(attempt.agent)
        latch = policy.after_attempt(
            watch.latch, outcome="summarizer_failed", calls=len(attempt.calls),
            key=attempt.held.revision, tokens=attempt.before, reason=error, attempt=attempt.id,
        )  # fmt: skip
        if latch is None or latch is watch.latch:
            return
        if watch.latch is not None:
            self._cleared(watch, "input_changed")
        watch.latch = latch
        watch.latch_id = watch.chat.reporter.names.mint("latch")
        fields = policy.wire(latch, name=watch.latch_id, scope="process")
        fields["bypass"] = ["manual"]
        watch.chat.event("latch.set", **fields)

    def release(self, watch: Watch, command: str) -> bool:
        """An operator's word; False where nothing was latched."""
        if watch.latch is None:
            return False
        self._cleared(watch, "operator", command)
        return True

    @staticmethod
    def forget(watch: Watch) -> None:
        """A latch lives in the process: what an earlier one left set is told as over."""
        reporter = watch.chat.reporter
        held = dict(reporter._station.journal.tracks.of(watch.key.id).latches)
        for latch, is_set in held.items():
            if is_set:
                watch.chat.latch_cleared(latch, "restart")

    def _cleared(self, watch: Watch, how: str, command: str | None = None) -> None:
        if watch.latch_id is not None:
            watch.chat.latch_cleared(watch.latch_id, how, command)
        watch.latch, watch.latch_id = None, None


def _cause(attempt: Attempt) -> Any:
    return "manual" if attempt.asked.trigger in ("manual", "forced", "idle") else "proactive"
