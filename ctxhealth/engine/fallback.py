"""Fallback compaction: deterministic, without a model call, with the guarantees of its plan.

Six levels in order, stopping at the first that meets the target: large messages, old tool results,
oldest topics to bulks, bulks merged, bulks evicted, the current turn. Linear in the history's size.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .bulks import evict_oldest, merge_bulks
from .draft import Cell, Draft
from .folding import fold_topics
from .history import History, Scope
from .keep import KeepRules
from .laying_out import lay_out
from .levels import cut_large_messages, point_to_old_results, shrink_current_turn
from .plan import Cut, FallbackOutcome, Plan
from .shorten import Sizer

_LEVELS: tuple[Callable[[Draft], None], ...] = (
    cut_large_messages,
    point_to_old_results,
    fold_topics,
    merge_bulks,
    evict_oldest,
    shrink_current_turn,
)
#: A target of 0.8 x the smallest limit leaves room for a few turns before the next compaction.
TARGET_SHARE = 0.8


class StalePlan(ValueError):
    """The history is not the one that was planned for; plan again."""


def plan_fallback(
    history: History,
    *,
    target: int,
    scope: Scope = "history",
    rules: KeepRules | None = None,
    count: Callable[[str], int] | None = None,
) -> Plan:
    """Plan how to bring a history to ``target`` tokens in ``scope``.

    ``count`` is the agent's own tokenizer; without it a shortened text is sized by the density of
    what it was cut from. Raises ValueError for a negative target, or where the scope is ``prompt``
    and the size of the fixed part or the extras is unknown. Changes nothing.
    """
    _check_target(target)
    draft = lay_out(history, target, scope, KeepRules() if rules is None else rules, Sizer(count))
    before = draft.total
    for level in _LEVELS:
        if draft.met:
            break
        level(draft)
    return _plan(history, scope, before, draft)


def apply_plan(history: History, plan: Plan) -> History:
    """Return the history after the plan. Raises StalePlan where it is not the planned one."""
    if plan.revision != history.revision:
        raise StalePlan(f"revision: planned for {plan.revision[:12]}, got {history.revision[:12]}")
    done = plan.result
    return History(
        history.system, history.tools, history.extras, done.bulks, done.topics, done.current
    )


def default_target(
    *,
    scope: Scope = "history",
    budget: int | None = None,
    trigger: int | None = None,
    trigger_scope: Scope = "prompt",
    history_limit: int | None = None,
    beside: int | None = None,
    share: float = TARGET_SHARE,
) -> int:
    """Return ``share`` x the smallest of budget, trigger and history limit, in one scope.

    ``budget`` is a limit on the prompt, ``history_limit`` on the history; ``beside`` (fixed part
    and extras) carries one into the other. A limit that cannot be carried over is left out.
    Raises ValueError where none is left.
    """
    limits: list[tuple[int | None, Scope]] = [
        (budget, "prompt"),
        (trigger, trigger_scope),
        (history_limit, "history"),
    ]
    known = [_carried(limit, own, scope, beside) for limit, own in limits if limit is not None]
    usable = [limit for limit in known if limit is not None]
    if not usable:
        raise ValueError(f"target: no limit is known in the scope {scope!r}")
    # The tiny addition keeps 0.8 x 35 from becoming 27.999... and then 27.
    return math.floor(share * max(0, min(usable)) + 1e-9)


def _check_target(target: object) -> None:
    if isinstance(target, bool) or not isinstance(target, int) or target < 0:
        raise ValueError(f"target: must be an integer, 0 or more, not {target!r}")


def _carried(limit: int, own: Scope, scope: Scope, beside: int | None) -> int | None:
    if own == scope:
        return limit
    if beside is None:
        return None
    return limit + beside if scope == "prompt" else limit - beside


def _plan(history: History, scope: Scope, before: int, draft: Draft) -> Plan:
    outcome = _outcome(before, draft)
    cells = list(draft.cells())
    return Plan(
        revision=history.revision,
        scope=scope,
        before=before,
        after=draft.total,
        target=draft.target,
        outcome=outcome,
        steps=tuple(draft.steps),
        kept_verbatim=tuple(cell.item.id for cell in cells if not cell.shortened),
        cut=_cuts(draft, cells),
        folded=tuple(draft.folded),
        evicted=draft.evicted,
        floor=None if draft.met else draft.total,
        exact=draft.exact,
        result=draft.result(history),
    )


def _cuts(draft: Draft, cells: list[Cell]) -> tuple[Cut, ...]:
    """Return what every shortened item that is still there lost over all steps."""
    sizes: dict[str, int] = {}
    for step in draft.steps:
        for cut in step.cuts:
            sizes.setdefault(cut.id, cut.before)
    shortened = [cell.item for cell in cells if cell.shortened]
    return tuple(Cut(item.id, sizes[item.id], item.tokens) for item in shortened)


def _outcome(before: int, draft: Draft) -> FallbackOutcome:
    if before <= draft.target:
        return "not_needed"
    if draft.total >= before:
        return "nothing_foldable"
    return "fell_back" if draft.met else "floor_exceeds_target"
