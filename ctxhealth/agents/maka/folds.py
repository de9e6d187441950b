"""Compactions: from summarizer calls as they happen, and from decisions at the turn's end.

While a turn runs only the calls are on the wire; what became of them shows in the next request's
size and in new checkpoints. A turn that ended well says it itself, one that failed never does.
"""

from __future__ import annotations

from typing import Any

from ctxhealth.agents.maka.known import Fold, Turn
from ctxhealth.agents.maka.telling import Telling
from ctxhealth.agents.maka.words import INFERRED, decided_error, summary_error

OURS = "ctxhealth-"
# Maka's names for the two places where it compacts: before a turn, and within one.
PRIOR, ACTIVE = "priorReplay", "activeStep"
_FELL = 0.95
Frame = dict[str, Any]


def begin(to: Telling, turn: Turn, step: Frame, attempt: Frame) -> Fold:
    """The fold that a summarizer call belongs to, begun with it where it is the first."""
    if turn.fold is None:
        fold = turn.fold = Fold(
            f"fold-{attempt['attemptId']}", _trigger(turn), _phase(turn), to.known.load,
            model=step.get("modelId"), provider=step.get("providerId"),
            window=attempt.get("contextWindow"),
        )  # fmt: skip
        turn.overflowed = False
        to.tell(
            "compaction.started", attempt["startedAt"], attempt=fold.attempt, trigger=fold.trigger,
            phase=fold.phase, before=fold.before, scope="prompt",
        )  # fmt: skip
    return turn.fold


def called(fold: Fold, attempt: Frame) -> None:
    """One summarizer call ended."""
    fold.calls = (fold.calls or 0) + 1
    fold.error = summary_error(attempt)
    fold.detail = attempt.get("providerCode")
    for name, key in (("input", "inputTokens"), ("output", "outputTokens")):
        if attempt.get(key) is not None:
            setattr(fold, name, (getattr(fold, name) or 0) + attempt[key])


def close_by_request(
    to: Telling, turn: Turn, ts: int, after: int | None, checkpoint: bool | None
) -> None:
    """A request of ``after`` tokens followed. ``checkpoint``: whether one was written since."""
    fold = turn.fold
    if fold is None:
        return
    fell = after is not None and fold.before is not None and after < _FELL * fold.before
    if checkpoint or (checkpoint is None and fell and fold.error is None):
        # What is left the next reading tells; it is the provider's.
        _finish(to, turn, ts, "replaced", scope="prompt", before=fold.before)
        return
    _fail(fold)
    # Nothing was summarised and still less was sent: the oldest turns were left out.
    left_out = {"after": after, "lossy": True} if fell else {}
    reason = "the oldest turns were left out of the request" if fell else None
    _finish(to, turn, ts, "failedOpen", scope="prompt", before=fold.before, reason=reason,
            **left_out)  # fmt: skip


def close_by_end(to: Telling, turn: Turn, ts: int, checkpoint: bool | None) -> None:
    """The turn ended and nothing more will be said of it."""
    fold = turn.fold
    if fold is None:
        return
    if checkpoint:
        _finish(to, turn, ts, "replaced", scope="prompt", before=fold.before)
        return
    _fail(fold)
    _finish(to, turn, ts, "failedOpen", scope="prompt", before=fold.before)


def close_by_decision(to: Telling, turn: Turn, ts: int, decision: Frame, budget: Frame) -> None:
    """Maka's own word for a compaction that no request followed: one that was asked for."""
    before = _in_force(to, budget)
    replaced = decision.get("decision") == "replaced"
    after = budget.get("estimatedTokensAfter") if replaced else before
    reason = _reason(decision)
    fold = turn.fold or _without_calls(to, turn, ts, before)
    if replaced:
        fold.error = None
    elif fold.calls:
        fold.error = decided_error(reason) or fold.error
    word = str(decision.get("decision"))
    _finish(to, turn, ts, word, scope="history", before=before, after=after, reason=reason)
    to.known.outcomes[turn.id] = {
        "word": word, "reason": reason, "before": before, "after": after,
        "error": fold.error, "calls": fold.calls,
    }  # fmt: skip


def without_calls(
    to: Telling, turn: Turn, ts: int, reported: str, *, reason: str, trigger: str | None = None,
    detail: str | None = None, **sizes: Any,
) -> str:  # fmt: skip
    """An attempt in which the summarizer was never called. Returns its id."""
    fold = _without_calls(to, turn, ts, sizes.get("before"), trigger)
    fold.detail = detail
    _finish(to, turn, ts, reported, reason=reason, **sizes)
    return fold.attempt


def pair(turn: Turn, decisions: list[Frame]) -> list[tuple[Frame, str | None, str | None]]:
    """Each decision with the fold that it speaks of: (decision, attempt, error told of it).

    Both are in the order in which they happened. Where there are more decisions than folds, it
    is the structural ones that made no call.
    """
    found: list[tuple[Frame, str | None, str | None]] = []
    for stage in (PRIOR, ACTIVE):
        asked = [decision for decision in decisions if decision.get("stage") == stage]
        told = [fold for fold in turn.folds if fold[2] == stage]
        for at, decision in enumerate(asked):
            spare = len(asked) - at > len(told)
            if not told or (spare and _reason(decision) == "no_safe_completed_span"):
                found.append((decision, None, None))
                continue
            attempt, error, _ = told.pop(0)
            found.append((decision, attempt, error))
    return found


def _fail(fold: Fold) -> None:
    if fold.error is None:
        fold.error = "other"
        fold.detail = "its summary was not used"
    fold.detail = f"{fold.detail}. {INFERRED}" if fold.detail else INFERRED


def _finish(to: Telling, turn: Turn, ts: int, reported: str, **fields: Any) -> None:
    fold, turn.fold = turn.fold, None
    assert fold is not None
    summarizer = {
        "model": fold.model, "provider": fold.provider, "window": fold.window,
        "calls": fold.calls, "input": fold.input, "output": fold.output, "error": fold.error,
        "detail": fold.detail,
    }  # fmt: skip
    first = fold.phase == "pre_turn" and fold.trigger == "proactive"
    turn.folds.append([fold.attempt, fold.error, PRIOR if first else ACTIVE])
    to.tell(
        "compaction.finished", ts, attempt=fold.attempt, reported=reported, trigger=fold.trigger,
        summarizer={key: value for key, value in summarizer.items() if value is not None},
        **fields,
    )  # fmt: skip


def _without_calls(
    to: Telling, turn: Turn, ts: int, before: int | None, trigger: str | None = None
) -> Fold:
    number = len(turn.folds)
    name = f"fold-{turn.id}-{number}"
    fold = turn.fold = Fold(name, trigger or _trigger(turn), _phase(turn), before)
    # Calls that were not told are not known to be none.
    fold.calls = None if turn.untraced else 0
    to.tell(
        "compaction.started", ts, attempt=name, trigger=fold.trigger, phase=fold.phase,
        before=before, scope="history" if turn.bare else "prompt",
    )  # fmt: skip
    return fold


def _in_force(to: Telling, budget: Frame) -> int | None:
    """What was sent of the history before: Maka counts all of it, also what is folded already."""
    before = budget.get("estimatedTokensBefore")
    return None if before is None else max(0, before - to.known.saving)


def _trigger(turn: Turn) -> str:
    if turn.overflowed:
        return "reactive"
    if not turn.bare:
        return "proactive"
    return "forced" if turn.id.startswith(OURS) else "manual"


def _phase(turn: Turn) -> str:
    if turn.bare:
        return "between_turns"
    return "mid_turn" if turn.requests else "pre_turn"


def _reason(decision: Frame) -> str | None:
    reason = decision.get("failOpenReason") or decision.get("reason")
    return str(reason) if reason else None
