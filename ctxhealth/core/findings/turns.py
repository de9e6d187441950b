"""Turns that ended without an answer: stopped, failing."""

from __future__ import annotations

from ctxhealth.core.advice import against, manual
from ctxhealth.core.findings.definition import (
    CRITICAL,
    Definition,
    Facts,
    Verdict,
    continue_advice,
    fallback_advice,
    int_of,
)
from ctxhealth.core.latching import is_pressed
from ctxhealth.core.meter import load_now
from ctxhealth.core.model import Advice, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import clip, number, plural


def _stopped(state: ChatState, t: Thresholds, at: int) -> Verdict:
    turns = state.turns
    if not turns.stopped:
        return None
    unusable = max(state.replies.unusable_row, state.replies.empty_row)
    return (CRITICAL, turns.stopped_reason, turns.stopped_count, turns.stopped_limit, unusable)


def _say_stopped(facts: Facts) -> str:
    reason, count, limit, unusable = facts
    said = f" ({clip(str(reason).rstrip('.'), 160)})" if reason else ""
    if int_of(unusable):
        told = int_of(unusable if count is None else count)
        replies = plural(told, "unusable reply", "unusable replies")
        return f"{replies} ended the turn{said}."
    if count is not None:
        of = f" of {number(int_of(limit))}" if limit is not None else ""
        return f"the agent ended the turn at {number(int_of(count))}{of}{said}."
    return f"the agent ended the turn{said}."


def _advise_stopped(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    if is_pressed(state) or state.compactions.no_relief or _is_full(state):
        return (fallback_advice(state), continue_advice(state))
    return (continue_advice(state),)


def _is_full(state: ChatState) -> bool:
    load, budget = load_now(state), state.limits.budget
    return load is not None and budget is not None and load >= budget


def _failing(state: ChatState, t: Thresholds, at: int) -> Verdict:
    turns = state.turns
    if turns.failing < t.failing_turns:
        return None
    cause = None
    if state.compactions.summarizer_row:
        cause = state.compactions.summarizer_class or "failed"
    return (CRITICAL, turns.failing, turns.last_error, cause)


def _say_failing(facts: Facts) -> str:
    count, error, cause = facts
    text = f"the last {number(int_of(count))} turns ended in an error before any reply"
    if cause:
        text += f"; the summarizer fails first ({cause})"
    elif error:
        text += f": {clip(str(error), 160)}"
    return text + "."


def _advise_failing(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    if state.compactions.summarizer_row or is_pressed(state) or _is_full(state):
        return (fallback_advice(state), continue_advice(state))
    return (manual("Read the error and remove its cause; then continue the turn."),)


def _against_failing(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    if not state.compactions.summarizer_row:
        return ()
    why = "Each try calls the summarizer first and fails there."
    return (against("continue", why),)


DEFINITIONS = (
    Definition(
        code="stopped",
        state=State.STOPPED,
        title="The agent stopped",
        severity="critical",
        check=_stopped,
        sentence=_say_stopped,
        recommended=_advise_stopped,
        doc="The agent ended the turn by itself: too many unusable replies, or a limit of its "
        "own. Closes at the next answered turn.",
        actions=("compact_fallback", "continue"),
    ),
    Definition(
        code="turns_failing",
        state=State.STOPPED,
        title="Every turn fails",
        severity="critical from 2 turns in a row",
        check=_failing,
        sentence=_say_failing,
        recommended=_advise_failing,
        discouraged=_against_failing,
        doc="Turns end in an error without any reply of the model. Closes when a turn is "
        "answered, or ends in an error after a reply.",
        actions=("compact_fallback", "continue", "manual"),
    ),
)
