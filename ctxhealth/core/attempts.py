"""An attempt's event as the facts that its outcome is computed from (domain 4)."""

from __future__ import annotations

import msgspec

from ctxhealth.core.limits import crosses
from ctxhealth.core.meter import load_now, projection, trigger_measure
from ctxhealth.core.model import AttemptView, Outcome, StepView, SummarizerView
from ctxhealth.core.overflow import parse_overflow
from ctxhealth.core.parts import TEXT
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import clip
from ctxhealth.engine.outcome import AttemptFacts, AttemptStep, classify_outcome
from ctxhealth.wire.events import CompactionFinished, CompactionStarted
from ctxhealth.wire.parts import Summarizer

# Words of agents that name what happened to the attempt itself, not what it achieved.
_CANCELLED = frozenset({"cancelled", "canceled", "aborted", "user_stop", "interrupted"})
_REFUSED = frozenset({"refused", "context_unfit", "lock_held", "busy"})
_TIMED_OUT = frozenset({"timed_out", "timeout", "lease_expired"})
_DURABILITY = frozenset(
    {
        "durability_failed", "write_failed", "write_empty", "persist_failed", "store_failed",
        "ledger_unreadable", "ledger_read_failed", "ledger_wait_aborted", "head_anchor_not_durable",
    }
)  # fmt: skip
_STRUCTURAL = frozenset({"nothing_foldable", "nothing_to_fold", "nothing_to_compact", "noop"})


def started_view(event: CompactionStarted, seq: int, at: int) -> AttemptView:
    return AttemptView(
        attempt=event.attempt,
        outcome=Outcome.RUNNING,
        trigger=event.trigger,
        scope=event.scope,
        started_seq=seq,
        started_at=at,
        phase=event.phase,
        before=event.before,
        input_hash=clip(event.input_hash, TEXT),
    )


def attempt_facts(state: ChatState, event: CompactionFinished, view: AttemptView) -> AttemptFacts:
    """Facts for the classifier; an assumed trigger is none of them."""
    limits = state.limits
    own = limits.trigger_source in ("declared", "learned")
    reported = event.reported.lower()
    summarizer = event.summarizer
    reason = _word(event.reason)
    return AttemptFacts(
        durability_error=reported in _DURABILITY or reason in _DURABILITY,
        cancelled=reported in _CANCELLED,
        refused=reported in _REFUSED,
        timed_out=reported in _TIMED_OUT and not (summarizer and summarizer.calls),
        before=view.before,
        after=view.after,
        before_scope=view.scope,
        after_scope=view.after_scope,
        meanwhile=view.meanwhile,
        trigger=limits.trigger if own else None,
        trigger_scope=limits.trigger_scope if own else None,
        trigger_inclusive=limits.trigger_inclusive,
        calls=calls_of(event),
        error=summary_error(event.summarizer),
        emptied=bool(event.emptied),
        lossy=bool(event.lossy),
        structural=reported in _STRUCTURAL,
        reason=reason,
        steps=tuple(AttemptStep(step.step, step.calls) for step in event.steps or ()),
        removed=view.removed,
    )


def calls_of(event: CompactionFinished) -> int | None:
    """Summarizer calls: the summarizer's own count, else the sum over the steps."""
    if event.summarizer is not None and event.summarizer.calls is not None:
        return event.summarizer.calls
    counts = [step.calls for step in event.steps or () if step.calls is not None]
    return sum(counts) if counts else None


def calls_made(view: AttemptView | None) -> int | None:
    """Summarizer calls of an attempt as it is on record; None is unknown."""
    if view is None:
        return None
    if view.summarizer is not None and view.summarizer.calls is not None:
        return view.summarizer.calls
    counts = [step.calls for step in view.steps if step.calls is not None]
    return sum(counts) if counts else None


def summary_error(summarizer: Summarizer | SummarizerView | None) -> str | None:
    """The class of the last call's failure; an answer of 0 tokens is an empty one.

    A failure that the agent did not tell apart is an overflow where its text says so.
    """
    if summarizer is None:
        return None
    if summarizer.error in ("provider", "other") and parse_overflow(None, None, summarizer.detail):
        return "overflow"
    if summarizer.error is not None:
        return summarizer.error
    if summarizer.calls and summarizer.output == 0:
        return "empty"
    return None


def _word(reason: str | None) -> str | None:
    """A reason that is one word of a vocabulary, in our spelling; a sentence is none."""
    if reason is None:
        return None
    word = reason.strip().lower().replace("-", "_").replace(" ", "_")
    return word if len(word) <= 60 else None


def is_needed(state: ChatState, view: AttemptView) -> bool | None:
    """Whether relief was due: an overflow, or above a trigger of the agent's own or the budget."""
    if view.trigger == "reactive":
        return True
    limits = state.limits
    load, ahead, budget = load_now(state), projection(state), limits.budget
    if budget is not None and any(size is not None and size > budget for size in (load, ahead)):
        return True
    if limits.trigger is None or limits.trigger_source not in ("declared", "learned"):
        return None
    if view.before is not None and view.scope == limits.trigger_scope:
        return crosses(view.before, limits.trigger, limits.trigger_inclusive)
    measure = trigger_measure(state)
    if measure is None:
        return None
    return crosses(measure, limits.trigger, limits.trigger_inclusive)


def finished_view(
    state: ChatState,
    event: CompactionFinished,
    started: AttemptView | None,
    seq: int,
    at: int,
) -> AttemptView:
    """The attempt as it ended, with what its start said; its outcome is judged afterwards."""
    begun = started if started is not None else _never_started(event)
    return msgspec.structs.replace(
        begun,
        outcome=Outcome.UNKNOWN,
        trigger=event.trigger or begun.trigger,
        scope=event.scope,
        finished_seq=seq,
        finished_at=at,
        before=event.before if event.before is not None else begun.before,
        after=event.after,
        after_scope=event.after_scope or event.scope,
        reported=event.reported,
        reason=clip(event.reason, TEXT),
        steps=_steps(event),
        summarizer=_summarizer(state, event.summarizer),
        input_hash=event.input_hash or begun.input_hash,
        ms=_duration(event, begun, at),
        backup=clip(event.backup, TEXT),
        lossy=event.lossy,
        removed=None if event.removed is None else len(event.removed),
        added=None if event.added is None else len(event.added),
        meanwhile=event.meanwhile if started is None else _meanwhile(state, event),
    )


def _never_started(event: CompactionFinished) -> AttemptView:
    """Of an attempt whose start was not told."""
    return AttemptView(
        attempt=event.attempt,
        outcome=Outcome.UNKNOWN,
        trigger="unknown",
        scope=event.scope,
        started_seq=None,
    )


def _duration(event: CompactionFinished, begun: AttemptView, at: int) -> int | None:
    if event.ms is not None or begun.started_at is None:
        return event.ms
    return max(0, at - begun.started_at)


def _meanwhile(state: ChatState, event: CompactionFinished) -> int | None:
    """Tokens added while it ran: the agent's word, else what was seen."""
    base = state.compactions.base.get(event.attempt)
    if event.meanwhile is not None or base is None:
        return event.meanwhile
    return state.meter.added - base[0]


def _steps(event: CompactionFinished) -> tuple[StepView, ...]:
    return tuple(
        StepView(step=step.step, before=step.before, after=step.after, calls=step.calls)
        for step in (event.steps or ())[:16]
    )


def _summarizer(state: ChatState, part: Summarizer | None) -> SummarizerView | None:
    if part is None:
        return None
    facts = state.facts
    return SummarizerView(
        model=part.model or facts.utility_model,
        provider=part.provider or facts.utility_provider,
        window=part.window if part.window is not None else facts.utility_window,
        calls=part.calls,
        input=part.input,
        output=part.output,
        error=part.error,
        detail=clip(part.detail, TEXT),
    )


def classified(state: ChatState, event: CompactionFinished, view: AttemptView) -> AttemptView:
    facts = attempt_facts(state, event, view)
    name, flags = classify_outcome(facts)
    all_flags: tuple[str, ...] = flags
    if event.inferred:
        all_flags = (*all_flags, "inferred")
    outcome = Outcome(name)
    failed = outcome is Outcome.SUMMARIZER_FAILED
    return msgspec.structs.replace(
        view,
        outcome=outcome,
        flags=all_flags,
        freed=facts.freed,
        needed=is_needed(state, view),
        error_class=(facts.error or "other") if failed else None,
        lossy=True if outcome is Outcome.FELL_BACK and view.lossy is None else view.lossy,
    )
