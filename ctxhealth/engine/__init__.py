"""What an agent can embed: history, fallback compaction, guard, latch and reply policy.

Standard library only, no clock, no randomness; the folder can be vendored as it is.
"""

from __future__ import annotations

from .backup import backup_document, fall_back, history_from_backup
from .fallback import StalePlan, apply_plan, default_target, plan_fallback
from .guard import ContextUnfit, Guard, GuardResult, corrected_count, crosses, fits
from .history import Bulk, History, Item, Scope, Topic
from .keep import KeepRules
from .latch import Cause, Decision, Latch, LatchKind, LatchPolicy
from .outcome import AttemptFacts, AttemptStep, Flag, Outcome, classify_outcome
from .pairs import open_calls, orphan_results
from .plan import Cut, FallbackOutcome, Plan, Step
from .reading import HistoryError
from .repair import Repair, repair_pairs
from .replies import EmptyCause, Episode, Reply, Verdict, empty_cause, empty_warning, judge_reply

__all__ = [
    "AttemptFacts",
    "AttemptStep",
    "Bulk",
    "Cause",
    "ContextUnfit",
    "Cut",
    "Decision",
    "EmptyCause",
    "Episode",
    "FallbackOutcome",
    "Flag",
    "Guard",
    "GuardResult",
    "History",
    "HistoryError",
    "Item",
    "KeepRules",
    "Latch",
    "LatchKind",
    "LatchPolicy",
    "Outcome",
    "Plan",
    "Repair",
    "Reply",
    "Scope",
    "StalePlan",
    "Step",
    "Topic",
    "Verdict",
    "apply_plan",
    "backup_document",
    "classify_outcome",
    "corrected_count",
    "crosses",
    "default_target",
    "empty_cause",
    "empty_warning",
    "fall_back",
    "fits",
    "history_from_backup",
    "judge_reply",
    "open_calls",
    "orphan_results",
    "plan_fallback",
    "repair_pairs",
]
