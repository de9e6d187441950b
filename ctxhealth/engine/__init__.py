"""What an agent can embed: history, fallback compaction, guard, latch and reply policy.

Standard library only, no clock, no randomness; the folder can be vendored as it is.
"""

from __future__ import annotations

from .fallback import StalePlan, apply_plan, default_target, plan_fallback
from .history import Bulk, History, Item, Scope, Topic
from .keep import KeepRules
from .plan import Cut, FallbackOutcome, Plan, Step
from .reading import HistoryError

__all__ = [
    "Bulk",
    "Cut",
    "FallbackOutcome",
    "History",
    "HistoryError",
    "Item",
    "KeepRules",
    "Plan",
    "Scope",
    "StalePlan",
    "Step",
    "Topic",
    "apply_plan",
    "default_target",
    "plan_fallback",
]
