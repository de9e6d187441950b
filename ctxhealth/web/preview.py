"""What a press would do, said before it: computed by the engine over the mirrored history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxhealth.core.model import ChatDetail, LatchView
from ctxhealth.engine import Cut, History, Item, Plan, Topic, default_target, plan_fallback
from ctxhealth.engine.history import Scope
from ctxhealth.store.queries import ChatRow
from ctxhealth.web.actions import ACTIONS, Action, open_latches
from ctxhealth.web.format import number, plural, words

MAX_CUTS = 8
AGREES = 0.95  # a local count this close to the provider's is taken as it is


@dataclass(frozen=True, slots=True)
class Level:
    """One step of the plan: totals before and after it, and what it touches."""

    number: int
    name: str
    before: int
    after: int
    touches: str


@dataclass(frozen=True, slots=True)
class Preview:
    """``certain`` says that the agent runs this very plan; ``notes`` are facts to read first."""

    action: Action
    plan: Plan | None = None
    levels: tuple[Level, ...] = ()
    cuts: tuple[tuple[str, int, int], ...] = ()
    more_cuts: int = 0
    kept: int = 0
    top: int = 0
    certain: bool = False
    notes: tuple[str, ...] = ()
    latch: LatchView | None = None
    offer_continue: bool = False
    continue_on: bool = False

    @property
    def useless(self) -> str:
        """Why the fallback would free nothing; empty where it would, or where nobody knows."""
        plan = self.plan
        if plan is None or plan.after < plan.before:
            return ""
        if plan.outcome == "not_needed":
            return (
                f"Nothing to free: {number(plan.before)} tokens are within the target of "
                f"{number(plan.target)} already."
            )
        return f"Nothing to free: no part of the {number(plan.before)} tokens can be made smaller."


_LEVELS = {
    "large_message": "Cut large messages head and tail",
    "prune": "Old tool results to one-line pointers",
    "topics_to_bulk": "Oldest topics to extracts",
    "bulk_merge": "Merge extracts",
    "evict": "Evict the oldest extracts",
}


_THEN_CONTINUE = ("compact_fallback", "compact_summarize")


def preview_of(
    kind: str,
    chat: ChatRow,
    detail: ChatDetail,
    history: History | None,
    *,
    latch: LatchView | None = None,
) -> Preview:
    action = ACTIONS[kind]
    waits = detail.summary.waiting_since is not None
    notes = tuple(_notes(kind, chat, detail))
    offer = kind in _THEN_CONTINUE and "continue" in detail.summary.command_kinds
    if kind not in ("compact_fallback", "rescue"):
        return Preview(
            action, notes=notes, latch=latch, offer_continue=offer, continue_on=offer and waits
        )
    factor = _correction(detail)
    plan, why = _plan(detail, scaled(history, factor) if history and factor > 1 else history)
    own = chat.fallback != "engine"
    return Preview(
        action,
        plan=plan,
        levels=_levels(plan) if plan else (),
        cuts=tuple((c.id, c.before, c.after) for c in _largest(plan)) if plan else (),
        more_cuts=max(0, len(plan.cut) - MAX_CUTS) if plan else 0,
        kept=len(plan.kept_verbatim) if plan else 0,
        top=plan.before if plan else 0,
        certain=plan is not None and not own and plan.exact and factor == 1,
        notes=(*_plan_notes(plan, why, own=own), *_count_notes(factor), *notes),
        offer_continue=offer,
        continue_on=offer and waits,
    )


def _correction(detail: ChatDetail) -> float:
    """What the agent's counts are multiplied by to be the provider's; 1 where they agree."""
    calibration = detail.summary.calibration
    return 1 / calibration if calibration is not None and 0 < calibration < AGREES else 1.0


def scaled(history: History, factor: float) -> History:
    """The same history with every count multiplied, so that limits in the provider's tokens
    meet a history in them."""

    def item(entry: Item) -> Item:
        return replace(entry, tokens=round(entry.tokens * factor))

    def topic(part: Topic) -> Topic:
        return replace(part, items=tuple(item(entry) for entry in part.items))

    def size(tokens: int | None) -> int | None:
        return None if tokens is None else round(tokens * factor)

    return replace(
        history,
        system=size(history.system),
        tools=size(history.tools),
        extras=size(history.extras),
        bulks=tuple(replace(b, tokens=round(b.tokens * factor)) for b in history.bulks),
        topics=tuple(topic(part) for part in history.topics),
        current=topic(history.current),
    )


def _count_notes(factor: float) -> list[str]:
    if factor == 1:
        return []
    return [f"Counts are the agent's times {factor:.2f}: it sees less than its provider counts."]


def _plan(detail: ChatDetail, history: History | None) -> tuple[Plan | None, str]:
    """The plan, or why there is none."""
    if history is None:
        return None, (
            "This agent has not reported the size of every item: what the fallback would give "
            "cannot be computed here. The agent computes it from its own history."
        )
    summary = detail.summary
    scope: Scope = "history" if summary.history.limit is not None else "prompt"
    try:
        target = default_target(
            scope=scope,
            budget=summary.budget,
            trigger=summary.trigger.value,
            trigger_scope="history" if summary.trigger.scope == "history" else "prompt",
            history_limit=summary.history.limit,
            beside=history.beside,
        )
        return plan_fallback(history, target=target, scope=scope), ""
    except ValueError as error:
        return None, f"No preview: {error}."


def _largest(plan: Plan) -> list[Cut]:
    return sorted(plan.cut, key=lambda cut: -cut.tokens)[:MAX_CUTS]


def _levels(plan: Plan) -> tuple[Level, ...]:
    return tuple(
        Level(step.level, _step_name(step.level, step.step), step.before, step.after,
              _touches(step.step, len(step.touched)))
        for step in plan.steps
    )  # fmt: skip


def _step_name(level: int, step: str) -> str:
    if level == 6:
        return "Shorten the current turn's results"
    return _LEVELS.get(step, words(step))


def _touches(step: str, count: int) -> str:
    what = {"topics_to_bulk": "topic", "bulk_merge": "extract", "evict": "extract"}
    return plural(count, what.get(step, "item"))


def _plan_notes(plan: Plan | None, why: str, *, own: bool) -> Sequence[str]:
    if plan is None:
        return [why]
    notes = []
    if own:
        notes.append(
            "The agent compacts its own way: these are the numbers of the rules here, "
            "as an orientation."
        )
    elif not plan.exact:
        notes.append(
            "This agent does not share text; sizes are enough to plan, and the sizes after a cut "
            "are estimates."
        )
    if plan.outcome == "floor_exceeds_target":
        notes.append(
            f"All levels together reach {number(plan.floor)}, above the target of "
            f"{number(plan.target)}: what must stay is too large."
        )
    return notes


def _notes(kind: str, chat: ChatRow, detail: ChatDetail) -> list[str]:
    notes = []
    if kind == "clear_latch" and not open_latches(detail.latches):
        notes.append("Nothing is latched now; the agent will refuse.")
    if detail.summary.turn_open:
        notes.append(
            "A turn is running: the agent acts at its next safe point, within 10 minutes, and the "
            "receipt says what it waits for."
        )
    notes.append("It must reach the agent within 60 s, or it expires and never runs.")
    return notes
