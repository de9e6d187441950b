"""How this agent uses its compaction: at its trigger at once, or when a turn has ended."""

from __future__ import annotations

from ctxhealth.core.state import ChatState
from ctxhealth.wire.events import CompactionStarted


def watch_habit(state: ChatState, event: CompactionStarted) -> None:
    """Whether the agent compacts as soon as it is above its trigger, or waits for a turn's end."""
    requests = state.requests
    if requests.above > 1:
        requests.prompt_folds = 0
    elif event.phase == "mid_turn" and _near_trigger(state, event):
        requests.prompt_folds += 1


def _near_trigger(state: ChatState, event: CompactionStarted) -> bool:
    """False where the attempt began so close to the budget that this may be what made it start."""
    limits, before = state.limits, event.before
    if event.scope != "prompt" or limits.trigger_scope != "prompt" or before is None:
        return True
    if limits.trigger is None or limits.budget is None:
        return True
    return before - limits.trigger < (limits.budget - limits.trigger) / 4
