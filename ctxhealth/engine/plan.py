"""What a fallback would do, as a value: steps, what is kept, what is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .history import History, Scope

FallbackOutcome = Literal["fell_back", "not_needed", "nothing_foldable", "floor_exceeds_target"]
StepName = Literal["large_message", "prune", "topics_to_bulk", "bulk_merge", "evict"]


@dataclass(frozen=True)
class Cut:
    """One item that stays but shorter."""

    id: str
    before: int
    after: int

    @property
    def tokens(self) -> int:
        """Tokens cut from the item."""
        return self.before - self.after


@dataclass(frozen=True)
class Step:
    """One step of one level. ``before`` and ``after`` are totals in the plan's scope.

    ``touched`` are ids of items (levels 1, 2, 6), topics (3) or bulks (4, 5). ``made`` are the ids
    of bulks that came out of it.
    """

    level: int
    step: StepName
    before: int
    after: int
    touched: tuple[str, ...]
    cuts: tuple[Cut, ...] = ()
    made: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        return {
            "level": self.level,
            "step": self.step,
            "before": self.before,
            "after": self.after,
            "calls": 0,
            "touched": list(self.touched),
            "cuts": [[cut.id, cut.before, cut.after] for cut in self.cuts],
            "made": list(self.made),
        }


@dataclass(frozen=True)
class Plan:
    """What the fallback would do to one revision of a history.

    ``outcome`` is ``not_needed`` (at or below the target already), ``fell_back`` (after <= target),
    ``floor_exceeds_target`` (all levels together reach only ``floor``) or ``nothing_foldable``
    (nothing can be made smaller). ``exact`` says that the text of everything touched was known;
    otherwise the sizes after are estimates. ``kept_verbatim`` are ids of items that stay as they
    are, ``cut`` the items that stay but shorter, ``folded`` ids of items that are no longer sent:
    at most an extract stands for them. ``evicted`` counts records that left only a line.
    """

    revision: str
    scope: Scope
    before: int
    after: int
    target: int
    outcome: FallbackOutcome
    steps: tuple[Step, ...]
    kept_verbatim: tuple[str, ...]
    cut: tuple[Cut, ...]
    folded: tuple[str, ...]
    evicted: int
    floor: int | None
    exact: bool
    result: History = field(repr=False, compare=False)

    @property
    def lossy(self) -> bool:
        """True for every plan that changes anything: no model wrote a summary."""
        return bool(self.steps)

    @property
    def freed(self) -> int:
        return self.before - self.after

    @property
    def sentence(self) -> str:
        """Say in one line what the plan does, with its numbers."""
        if self.outcome == "not_needed":
            return f"{self.before:,} tokens are within the target of {self.target:,}."
        if self.outcome == "nothing_foldable":
            return f"Nothing can be folded: {self.before:,} tokens, target {self.target:,}."
        freed = f"{self.before:,} to {self.after:,} tokens ({self.freed:,} freed)"
        if self.outcome == "fell_back":
            return f"Fallback: {freed}, target {self.target:,}."
        return f"Fallback: {freed}, still above the target of {self.target:,}."

    def to_dict(self) -> dict[str, object]:
        """Return the plan as JSON values, without the resulting history."""
        return {
            "revision": self.revision,
            "scope": self.scope,
            "before": self.before,
            "after": self.after,
            "target": self.target,
            "outcome": self.outcome,
            "steps": [step.to_dict() for step in self.steps],
            "kept_verbatim": list(self.kept_verbatim),
            "cut": [[cut.id, cut.before, cut.after] for cut in self.cut],
            "folded": list(self.folded),
            "evicted": self.evicted,
            "floor": self.floor,
            "lossy": self.lossy,
            "exact": self.exact,
            "sentence": self.sentence,
        }
