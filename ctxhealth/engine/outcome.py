"""What a compaction attempt came to, computed from the facts, whatever word the agent used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .guard import crosses

Outcome = Literal[
    "durability_failed",
    "cancelled",
    "refused",
    "timed_out",
    "not_needed",
    "summarizer_failed",
    "fell_back",
    "not_comparable",
    "reduced",
    "nothing_foldable",
    "no_progress",
    "grew",
    "unknown",
]
Flag = Literal["emptied", "ineffective", "over_compacted"]

#: Reasons that agents give when the history itself offers nothing to fold at that moment.
STRUCTURAL_REASONS = frozenset(
    {
        "no_safe_completed_span",
        "nothing_foldable",
        "nothing_to_fold",
        "nothing_to_compact",
        "nothing_to_summarize",
        "no_foldable_region",
        "no_split_point",
        "already_compacted",
        "empty_history",
        "head_anchor_exceeds_capacity",
    }
)
#: Steps that stand for a model's summary; without a call they were done by rule.
_SUMMARY_STEPS = frozenset({"attention", "topics_to_bulk", "bulk_merge", "summary", "native"})
_RULE_STEPS = frozenset({"fallback", "evict"})
_LEAST_SHARE = 0.05
_NOISE_SHARE = 0.01
_NOISE_TOKENS = 200


@dataclass(frozen=True)
class AttemptStep:
    """One step that ran: its name and its summarizer calls (``None`` is unknown)."""

    step: str
    calls: int | None = None


@dataclass(frozen=True)
class AttemptFacts:
    """What is known of one attempt. Sizes are tokens; ``None`` is unknown everywhere.

    ``before_scope``/``after_scope``: what was counted; an unknown after-scope is the before-scope.
    ``meanwhile``: added to the history between start and finish. ``trigger``: declared or learned
    only, never an assumed one. ``calls``: summarizer calls. ``error``: error class of the *last*
    summarizer call; ``None`` where it succeeded or none was made. ``emptied``: content was
    replaced by a blank or by error text. ``removed``: items taken out. ``lossy``: the agent says
    that no model wrote the summary. ``structural`` and ``reason``: why nothing was done.
    ``target``: what the attempt aimed at, in the after-scope.
    """

    durability_error: bool = False
    cancelled: bool = False
    refused: bool = False
    timed_out: bool = False
    before: int | None = None
    after: int | None = None
    before_scope: str | None = None
    after_scope: str | None = None
    meanwhile: int | None = None
    trigger: int | None = None
    trigger_scope: str | None = None
    trigger_inclusive: bool = False
    calls: int | None = None
    error: str | None = None
    emptied: bool = False
    lossy: bool = False
    structural: bool = False
    reason: str | None = None
    steps: tuple[AttemptStep, ...] = ()
    removed: int | None = None
    target: int | None = None

    @property
    def same_scope(self) -> bool:
        """Whether before and after count the same thing, as far as is known."""
        known = {scope for scope in (self.before_scope, self.after_scope) if scope is not None}
        return len(known) < 2

    @property
    def own_after(self) -> int | None:
        """What was left of the history as it was at the start."""
        return None if self.after is None else max(0, self.after - (self.meanwhile or 0))

    @property
    def freed(self) -> int | None:
        """Tokens freed, negative where it grew; ``None`` where that cannot be said."""
        if self.before is None or self.own_after is None or not self.same_scope:
            return None
        return self.before - self.own_after

    @property
    def shrank(self) -> bool:
        return self.freed is not None and self.freed > 0

    @property
    def had_calls(self) -> bool:
        """Whether a summarizer call was made; an error of one proves it where no count is given."""
        return self.calls >= 1 if self.calls is not None else self.error is not None

    @property
    def is_structural(self) -> bool:
        return self.structural or self.reason in STRUCTURAL_REASONS

    @property
    def was_due(self) -> bool | None:
        """Whether before crossed the trigger; ``None`` where no comparable trigger is known."""
        if self.before is None or self.trigger is None:
            return None
        if self.trigger_scope not in (None, self.before_scope):
            return None
        return crosses(self.before, self.trigger, self.trigger_inclusive)

    @property
    def stands_in(self) -> bool:
        """Whether a deterministic step did a summary's work."""
        if any(s.step in _RULE_STEPS for s in self.steps):
            return True
        if any(s.step in _SUMMARY_STEPS and s.calls == 0 for s in self.steps):
            return True
        return self.lossy and (self.calls == 0 or self.error is not None)

    @property
    def ran(self) -> bool:
        """Whether anything was tried: a call, a step, or an attempt that was due."""
        return self.calls != 0 or bool(self.steps) or bool(self.was_due)


def _noise(before: int) -> float:
    """Return the growth that counts as none: added ids, rewritten markers, rounding."""
    return max(_NOISE_SHARE * before, _NOISE_TOKENS)


def _not_needed(facts: AttemptFacts) -> bool:
    if facts.freed is None:
        unchanged = not facts.removed and not facts.steps and facts.same_scope
    else:
        unchanged = facts.freed == 0
    return facts.was_due is False and facts.calls == 0 and unchanged and not facts.emptied


def _reduced(facts: AttemptFacts) -> bool:
    if not facts.shrank or facts.before is None or facts.freed is None:
        return False
    return facts.error is None or facts.freed >= _LEAST_SHARE * facts.before


def _summarizer_failed(facts: AttemptFacts) -> bool:
    if not facts.had_calls:
        return False
    return facts.error is not None or (facts.is_structural and not facts.shrank)


def _no_progress(facts: AttemptFacts) -> bool:
    if not facts.ran:
        return False
    if facts.before is None or facts.freed is None:
        return facts.removed == 0 and facts.same_scope
    return -_noise(facts.before) <= facts.freed <= 0


def _grew(facts: AttemptFacts) -> bool:
    if facts.before is None or facts.freed is None:
        return False
    return facts.freed < -_noise(facts.before)


#: First row that holds, in this order.
_ROWS: tuple[tuple[Outcome, Callable[[AttemptFacts], bool]], ...] = (
    ("durability_failed", lambda facts: facts.durability_error),
    ("cancelled", lambda facts: facts.cancelled),
    ("refused", lambda facts: facts.refused),
    ("timed_out", lambda facts: facts.timed_out),
    ("not_needed", _not_needed),
    ("summarizer_failed", lambda facts: facts.emptied),
    ("fell_back", lambda facts: facts.stands_in and facts.shrank),
    ("not_comparable", lambda facts: not facts.same_scope),
    ("reduced", _reduced),
    ("summarizer_failed", _summarizer_failed),
    ("nothing_foldable", lambda facts: facts.is_structural and facts.calls == 0),
    ("no_progress", _no_progress),
    ("grew", _grew),
)
_EARLY = frozenset({"durability_failed", "cancelled", "refused", "timed_out", "not_needed"})


def classify_outcome(facts: AttemptFacts) -> tuple[Outcome, tuple[Flag, ...]]:
    """Return the outcome of an attempt and its flags.

    Flags: ``emptied``; ``ineffective`` (freed more than 0, less than 5%); ``over_compacted`` (less
    than half the target is left).
    """
    outcome: Outcome = next((name for name, holds in _ROWS if holds(facts)), "unknown")
    return outcome, _flags(facts, outcome)


def _flags(facts: AttemptFacts, outcome: Outcome) -> tuple[Flag, ...]:
    flags: list[Flag] = []
    if outcome in _EARLY:
        return ()
    if facts.emptied:
        flags.append("emptied")
    if facts.freed is not None and facts.before is not None and facts.shrank:
        if facts.freed < _LEAST_SHARE * facts.before:
            flags.append("ineffective")
        if facts.target is not None and (facts.own_after or 0) < facts.target / 2:
            flags.append("over_compacted")
    return tuple(flags)
