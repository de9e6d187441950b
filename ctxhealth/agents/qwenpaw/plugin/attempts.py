"""One run of the agent's compaction, followed from inside: counts, summarizer calls, outcome.

The manager runs before every step and mostly does nothing. An attempt is reported once its count
crosses the trigger, or where somebody asked for it.
"""

from __future__ import annotations

import asyncio
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from .facts import manager_of, window_of
from .failures import failure_of, summarizer_error
from .structure import Structure, bulk_id, structure_of
from .watch import Watch

PERSIST_FAILED = ("persist_failed", "persist_failed_unfit")
NOTHING_DONE = "at_or_below_trigger"
_FOLDS = ("pre_folded", "live_folded", "active_folded", "active_thinking_folded")
_SUMMARY_LEASE_S = 180


@dataclass(frozen=True)
class Asked:
    """Why compaction runs where it does not run by itself."""

    trigger: str
    attempt: str | None = None
    backup: str | None = None
    without_model: bool = False


@dataclass
class SummaryCall:
    """One call of the summarizer. ``text`` is what it answered, None while it runs or failed."""

    request: str
    text: str | None = None
    usage: dict[str, Any] | None = None
    error: str | None = None
    detail: str | None = None


@dataclass
class Attempt:
    """``agent`` is whatever the manager was given; ``config`` None is the agent's own."""

    watch: Watch
    manager: Any
    agent: Any
    asked: Asked
    config: Any = None
    id: str | None = None
    before: int | None = None
    after: int | None = None
    outcome: str | None = None
    error: BaseException | None = None
    persist_error: str | None = None
    summary_failed: BaseException | None = None
    latched: bool = False
    calls: list[SummaryCall] = field(default_factory=list)
    held: Structure = field(default_factory=Structure)
    begun: float = field(default_factory=time.monotonic)

    @property
    def is_forced(self) -> bool:
        return self.asked.trigger != "proactive"

    @property
    def trigger(self) -> float | None:
        """Tokens above which this run does something."""
        config = self.config or getattr(self.agent, "context_config", None)
        ratio, window = getattr(config, "trigger_ratio", None), window_of(self.agent)
        return None if ratio is None or window is None else ratio * window

    def counted(self, tokens: int) -> None:
        """The manager counted the prompt; the first time decides whether anything is to do."""
        self.after = tokens
        if self.before is not None:
            return
        self.before = tokens
        trigger = self.trigger
        if self.persist_error is None and trigger is not None and tokens > trigger:
            self.start()

    def start(self) -> None:
        if self.id is not None:
            return
        self.held = structure_of(self.agent.state.context)
        self.id = self.watch.chat.compaction_started(
            self.asked.attempt, self.asked.trigger, before=self.before, scope="prompt",
            phase="mid_turn" if self.watch.turn else "between_turns",
            input_hash=self.held.revision, lease_s=_SUMMARY_LEASE_S,
        )  # fmt: skip

    # -- the end

    def finish(self) -> None:
        """Report how it ended, where there was anything to report."""
        outcome = self.outcome or self._derived()
        self._tell_durability()
        if self.id is None and not self._is_worth_telling(outcome):
            return
        self.start()
        left = structure_of(self.agent.state.context)
        self._report(outcome, left)

    def _derived(self) -> str:
        """The outcome without the manager's log line."""
        if isinstance(self.error, asyncio.CancelledError):
            return "cancelled"
        if self.persist_error is not None:
            return "persist_failed" if self.error is None else "persist_failed_unfit"
        if self.error is not None:
            return "unfit" if hasattr(self.error, "hard_limit") else "error"
        return "done" if self.id is not None else NOTHING_DONE

    def _is_worth_telling(self, outcome: str) -> bool:
        """A store that cannot be written keeps compaction from running only above the trigger."""
        if self.is_forced or outcome not in (NOTHING_DONE, *PERSIST_FAILED):
            return True
        above = self.before is not None and self.trigger is not None and self.before > self.trigger
        return outcome in PERSIST_FAILED and above

    def _tell_durability(self) -> None:
        turn = self.watch.turn
        if self.persist_error is None or (turn is not None and turn.durability_told):
            return
        if turn is not None:
            turn.durability_told = True
        self.watch.chat.note(
            f"The history store could not be written, so nothing is evicted: {self.persist_error}",
            "warning",
        )

    def _report(self, outcome: str, left: Structure) -> None:
        assert self.id is not None
        done = getattr(self.manager, "last_compress", None) or {}
        evicted = int(done.get("evicted") or 0)
        folded = sum(int(done.get(name) or 0) for name in _FOLDS)
        changed = bool(evicted or folded)
        self.watch.chat.compaction_finished(
            self.id,
            _reported(outcome),
            before=self.before,
            after=self.after,
            scope="prompt",
            reason=self._reason(outcome, changed),
            steps=self._steps(evicted, folded),
            summarizer=self._summarizer(),
            removed=self._removed(left) or None,
            added=self._added(left) if evicted else None,
            input_hash=self.held.revision,
            revision=left.revision,
            lossy=(evicted > 0 and not self._summarised) or None,
            backup=self.asked.backup,
            trigger=self.asked.trigger,
            ms=int((time.monotonic() - self.begun) * 1000),
        )

    @property
    def _summarised(self) -> bool:
        return bool(self.calls) and self.summarizer_error is None

    @property
    def summarizer_error(self) -> str | None:
        """The class of the last call's failure, None where it was good or none was made."""
        if not self.calls:
            return None
        last = self.calls[-1]
        if last.error is not None:
            return last.error
        if not getattr(self.manager, "_summary_update_failed", False):
            return None
        return "malformed" if (last.text or "").strip() else "empty"

    def _summarizer(self) -> dict[str, Any] | None:
        """The summarizer's part; its tokens only where every call's are known."""
        model = getattr(self.agent, "model", None)
        found: dict[str, Any] = {"model": getattr(model, "model", None), "calls": len(self.calls)}
        for name in ("input", "output"):
            counts = [(call.usage or {}).get(name) for call in self.calls]
            if counts and all(count is not None for count in counts):
                found[name] = sum(count for count in counts if count is not None)
        error = self.summarizer_error
        if error is not None:
            found["error"] = error
            found["detail"] = self.calls[-1].detail or _said(self.summary_failed)
        return {key: value for key, value in found.items() if value is not None}

    def _steps(self, evicted: int, folded: int) -> list[dict[str, Any]] | None:
        steps: list[dict[str, Any]] = []
        if folded:
            steps.append({"step": "prune", "calls": 0})
        if self.calls:
            steps.append({"step": "summary", "calls": len(self.calls)})
        if evicted and not self._summarised:
            steps.append({"step": "evict", "calls": 0})
        if len(steps) == 1:
            steps[0].update(before=self.before, after=self.after)
        return steps or None

    def _reason(self, outcome: str, changed: bool) -> str | None:
        if self.persist_error is not None:
            return self.persist_error
        if self.error is not None:
            return _said(self.error)
        if outcome == "done" and not changed:
            return "nothing_to_compact"
        return None

    def _removed(self, left: Structure) -> list[str]:
        kept = {part.id for part in left.parts}
        old = [part.id for topic in self.held.topics for part in topic.parts]
        gone = [name for name in old if name not in kept]
        if self.held.memory_id is not None and self.held.memory_id != left.memory_id:
            gone.append(bulk_id(self.held))
        return gone

    def _added(self, left: Structure) -> list[dict[str, Any]] | None:
        if left.memory_id is None or left.memory_id == self.held.memory_id:
            return None
        tokens = sum(part.tokens for part in left.memory)
        return [{"id": bulk_id(left), "kind": "summary", "tokens": tokens}]


def _reported(outcome: str) -> str:
    if outcome in PERSIST_FAILED:
        return "persist_failed"
    return "context_unfit" if outcome == "unfit" else outcome


def _said(error: BaseException | None) -> str | None:
    return None if error is None else str(error) or type(error).__name__


def call_failed(call: SummaryCall, error: BaseException) -> None:
    """A summarizer call raised; one that was cut off by its time limit is a time-out."""
    if isinstance(error, asyncio.CancelledError):
        call.error, call.detail = "timeout", "the summary's time limit was reached"
        return
    call.error, call.detail = summarizer_error(error), str(failure_of(error)["detail"])


#: The attempt that runs in this task, and why.
running: ContextVar[Attempt | None] = ContextVar("ctxhealth_attempt", default=None)
asked: ContextVar[Asked | None] = ContextVar("ctxhealth_asked", default=None)


def begin(
    watch: Watch, manager: Any, agent: Any, config: Any, instructions: Any
) -> Attempt:  # fmt: skip
    """An attempt for one run. A lowered trigger without word from us is a person's /compact."""
    why = asked.get()
    if why is None:
        lowered = config is not None and _is_lower(config, getattr(agent, "context_config", None))
        why = Asked("manual" if lowered or instructions is not None else "proactive")
    return Attempt(watch, manager, agent, why, config)


def _is_lower(config: Any, base: Any) -> bool:
    given, own = getattr(config, "trigger_ratio", None), getattr(base, "trigger_ratio", None)
    return given is not None and (own is None or given < own)


def native_context(agent: Any) -> Structure | None:
    """Under the native strategy: the context before a run, to see afterwards what it did."""
    return None if manager_of(agent) is not None else structure_of(agent.state.context)


def report_native(watch: Watch, held: Structure, agent: Any, begun: float) -> bool:
    """The native strategy tells nothing: what it did is read off the context."""
    left = structure_of(agent.state.context)
    if left.revision == held.revision:
        return False
    kept = {part.id for part in left.parts}
    removed = [part.id for part in held.parts if part.id not in kept]
    if not removed:
        return False
    ms = int((time.monotonic() - begun) * 1000)
    attempt = watch.chat.compaction_started(
        None, "proactive", before=held.tokens, scope="history", input_hash=held.revision
    )
    watch.chat.compaction_finished(
        attempt, "compressed", before=held.tokens, after=left.tokens, scope="history",
        removed=removed, revision=left.revision, steps=[{"step": "native"}], ms=ms,
    )  # fmt: skip
    return True
