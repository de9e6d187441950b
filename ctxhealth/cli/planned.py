"""A fallback's plan as text: each level, what is kept, what is cut, what is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ctxhealth.cli.rewriting import Written
from ctxhealth.engine import History, Plan, Step

_CUTS = 5
_LEVELS = {
    1: "large messages cut",
    2: "old results to pointers",
    3: "topics to extracts",
    4: "extracts merged",
    5: "oldest extracts evicted",
    6: "current turn shortened",
}


def planned(file: Path, chat: str | None, history: History, plan: Plan) -> str:
    """The plan for a terminal."""
    return "\n".join([*_head(file, chat, history, plan), *_steps(plan), *_ends(plan)]) + "\n"


def _head(file: Path, chat: str | None, history: History, plan: Plan) -> Iterator[str]:
    whose = f", chat {chat}" if chat is not None else ""
    bulks, topics = _many(len(history.bulks), "bulk"), _many(len(history.topics), "topic")
    parts = f"{bulks}, {topics} and the current one"
    yield f"{file}{whose}: {plan.before:,} {plan.scope} tokens in {parts}"


def _steps(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        name = _LEVELS[step.level]
        yield (
            f"  level {step.level}  {name:<24} {step.before:>11,} -> {step.after:>11,}"
            f"   {_touched(step)}"
        )


def _touched(step: Step) -> str:
    what = {3: "topic", 4: "extract", 5: "extract"}.get(step.level, "message")
    made = f" into {len(step.made):,}" if step.level in (3, 4) else ""
    return f"{_many(len(step.touched), what)}{made}"


def _ends(plan: Plan) -> Iterator[str]:
    yield plan.sentence
    if not plan.steps:
        return
    yield f"Kept verbatim: {_many(len(plan.kept_verbatim), 'message')}."
    if plan.cut:
        yield f"Cut: {_many(len(plan.cut), 'message')}. {_largest(plan)}."
    if plan.folded:
        gone = _many(len(plan.folded), "message")
        yield f"No longer sent: {gone}, an extract stands for them at most."
    if plan.evicted:
        yield f"Evicted: {_many(plan.evicted, 'record')}, one line counts them."
    yield "Lossy: no model writes a summary."
    if not plan.exact:
        yield "Not every text is known, so the sizes after are estimates."


def _largest(plan: Plan) -> str:
    cuts = sorted(plan.cut, key=lambda cut: (-cut.tokens, cut.id))
    told = [f"{cut.id} {cut.before:,} -> {cut.after:,}" for cut in cuts[:_CUTS]]
    more = f" and {len(cuts) - _CUTS:,} more" if len(cuts) > _CUTS else ""
    return f"{', '.join(told)}{more}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def told_of(written: Written) -> str:
    """Where the new history is, and the one before it."""
    before = f" What was there before is in {written.backup}." if written.backup else ""
    return f"Written to {written.path}.{before}\n"
