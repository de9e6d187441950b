"""Maka's own account of a turn that ended well: what each compaction in it came to."""

from __future__ import annotations

from typing import Any

from ctxhealth.agents.maka import folds, latches
from ctxhealth.agents.maka.known import Turn
from ctxhealth.agents.maka.telling import Telling
from ctxhealth.agents.maka.words import decided_error

Frame = dict[str, Any]
# Nothing was tried: the history was small enough, or there was none; or it is no compaction.
_NOT_TRIED = frozenset(
    {
        "below_high_water", "context_budget_exhausted", "disabled", "empty_history",
        "max_history_tokens_missing",
    }
)  # fmt: skip
# There was too much, and none of it could be folded.
_NOTHING_FOLDABLE = frozenset({"insufficient_turns", "no_foldable_turns"})


def take(to: Telling, turn: Turn, usage: Frame) -> None:
    """``usage``: the turn's ``token_usage`` message."""
    budget = usage.get("contextBudget") or {}
    ts = int(usage["ts"])
    decided = budget.get("compactionDecisions") or []
    found = [each for each in decided if _is_news(to, each)]
    if turn.bare:
        decision = next(iter(decided), _nothing_said())
        folds.close_by_decision(to, turn, ts, decision, budget)
    else:
        for decision, attempt, error in folds.pair(turn, found):
            _one(to, turn, ts, decision, attempt, error, budget, usage)
    _remember(to, budget)


def _is_news(to: Telling, decision: Frame) -> bool:
    """Whether something was tried; a boundary is told again in every turn that rests on it."""
    word = decision.get("decision")
    if word == "failedOpen":
        return True
    if word == "replaced":
        ids = decision.get("boundaryIds") or []
        met = [to.known.meet(boundary) for boundary in ids]
        return any(met) or decision.get("stage") == "activeStep"
    return decision.get("reason") not in _NOT_TRIED


def _nothing_said() -> Frame:
    """A compaction that was asked for of a session that holds nothing yet."""
    return {"decision": "unchanged", "reason": "empty_history"}


def _one(
    to: Telling, turn: Turn, ts: int, decision: Frame, attempt: str | None, error: str | None,
    budget: Frame, usage: Frame,
) -> None:  # fmt: skip
    reason = decision.get("failOpenReason") or decision.get("reason")
    if attempt is None:
        _silent(to, turn, ts, decision, budget, usage)
        return
    said = decided_error(reason) if decision.get("decision") == "failedOpen" else None
    if said != error and decision.get("decision") == "failedOpen":
        to.note(ts, f"Maka on compaction {attempt}: {reason}.", "warning", code="fold_reason")


def _silent(to: Telling, turn: Turn, ts: int, decision: Frame, budget: Frame, usage: Frame) -> None:
    """One without a summarizer call: nothing could be folded, or the oldest turns were left out."""
    word, active = str(decision.get("decision")), decision.get("stage") == "activeStep"
    if word == "replaced":
        if active and turn.untraced:
            folds.without_calls(
                to, turn, ts, word, reason=str(decision.get("reason") or word), scope="history",
                before=decision.get("estimatedTokensBefore"),
                after=decision.get("estimatedTokensAfter"),
            )  # fmt: skip
        return
    reason = str(decision.get("failOpenReason") or decision.get("reason") or "unknown")
    if active:
        # When in the turn that was, and so at what size, is not told.
        attempt = folds.without_calls(to, turn, ts, word, reason=reason, scope="prompt")
        if word == "failedOpen":
            latches.decided(to, turn, ts, attempt)
        return
    before = budget.get("estimatedTokensBefore")
    before = None if before is None else max(0, before - to.known.saving)
    after = _sent_of_history(usage)
    lossy = True if before and after is not None and after < before else None
    word = "nothing_foldable" if reason in _NOTHING_FOLDABLE else word
    folds.without_calls(
        to, turn, ts, word, reason=reason, before=before, after=after, scope="history",
        lossy=lossy,
    )  # fmt: skip


def _sent_of_history(usage: Frame) -> int | None:
    """Maka's estimate of the earlier turns in the request."""
    for part in usage.get("promptSegments") or []:
        if part.get("kind") == "prior_history":
            return int(part["estimatedTokens"])
    return None


def _remember(to: Telling, budget: Frame) -> None:
    """By how much less than the whole history goes out from now on."""
    for written in budget.get("historyCompactWrittenBlockIds") or []:
        to.known.meet(written)
    decided = budget.get("compactionDecisions") or []
    before, after = budget.get("estimatedTokensBefore"), budget.get("estimatedTokensAfter")
    if before is None or after is None:
        return
    if any(each.get("decision") == "replaced" for each in decided):
        to.known.saving = max(0, before - after)
