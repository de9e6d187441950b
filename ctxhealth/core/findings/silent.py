"""Replies that show the user nothing."""

from __future__ import annotations

from ctxhealth.core.advice import against, manual
from ctxhealth.core.findings.definition import (
    CRITICAL,
    INFO,
    WARNING,
    Definition,
    Facts,
    Verdict,
    continue_advice,
    fallback_advice,
    int_of,
)
from ctxhealth.core.meter import load_now
from ctxhealth.core.model import Advice, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import number, plural


def _empty(state: ChatState, t: Thresholds, at: int) -> Verdict:
    replies = state.replies
    if not replies.empty_row:
        return None
    cause = replies.empty_cause or "unknown"
    severe = replies.empty_row >= t.empty_replies or cause == "window_full"
    prompt = replies.empty_prompt
    if prompt is None:
        prompt = state.meter.good
    return (
        CRITICAL if severe else WARNING,
        replies.empty_row,
        cause,
        prompt,
        state.limits.window,
        replies.empty_completion,
    )


def _say_empty(facts: Facts) -> str:
    row, cause, prompt, window, completion = facts
    replies = plural(int_of(row), "empty reply", "empty replies")
    many = replies if int_of(row) == 1 else f"{replies} in a row"
    tokens = "no tokens" if not completion else f"{number(int_of(completion))} tokens"
    if cause == "window_full":
        return (
            f"{many}: the prompt of {number(_number(prompt))} leaves no room in the window of "
            f"{number(_number(window))}; the provider answered with {tokens}."
        )
    if cause == "output_cap":
        return f"{many}: thinking used up the output limit before any text."
    if cause == "provider_empty":
        of = f" of {number(_number(window))}" if window is not None else ""
        return f"{many} although the prompt of {number(_number(prompt))}{of} had room."
    last = f"; the last known load is {number(_number(prompt))}" if prompt is not None else ""
    return f"{many}, cause unknown: the provider sent no usage{last}."


def _number(fact: object) -> int | None:
    return int(fact) if isinstance(fact, int | float) else None


def _advise_empty(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    if facts[1] == "window_full":
        return (fallback_advice(state), continue_advice(state))
    if facts[1] == "output_cap":
        return (manual("Raise the output limit or lower the thinking budget, then continue."),)
    load, budget = load_now(state), state.limits.budget
    if facts[1] == "unknown" and (load is None or budget is None or load > 0.8 * budget):
        return (fallback_advice(state), continue_advice(state))
    return (continue_advice(state),)


def _against_empty(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    if facts[1] == "window_full":
        return (against("continue", "The same prompt gets the same empty reply."),)
    return ()


def _invisible(state: ChatState, t: Thresholds, at: int) -> Verdict:
    return (INFO,) if state.replies.nothing_visible and not state.turns.open else None


def _repeating(state: ChatState, t: Thresholds, at: int) -> Verdict:
    repeats = state.replies.repeats
    load, budget = load_now(state), state.limits.budget
    if repeats < t.repeated_replies or (load and budget and load >= budget):
        return None
    return (WARNING, repeats)


def _advise_repeating(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (manual("Stop the turn and tell the agent what to do differently."),)


DEFINITIONS = (
    Definition(
        code="silent_empty",
        state=State.SILENT,
        title="Empty replies",
        severity="critical from 2 in a row or when the window is full, else warning",
        check=_empty,
        sentence=_say_empty,
        recommended=_advise_empty,
        discouraged=_against_empty,
        doc="A reply had no text, no call and no data. Its cause is told by numbers alone: the "
        "window is full only where the provider's own count says so.",
        actions=("compact_fallback", "continue", "manual"),
    ),
    Definition(
        code="repeating",
        state=State.LOOPING,
        title="The same reply again and again",
        severity="warning from 3",
        check=_repeating,
        sentence=lambda facts: (
            f"the same reply or call came {number(int_of(facts[0]))} times in a row while the "
            "load is fine."
        ),
        recommended=_advise_repeating,
        doc="Known only where the agent sends a hash of its messages.",
        actions=("manual",),
    ),
    Definition(
        code="nothing_visible",
        state=State.WATCH,
        title="Nothing to see",
        severity="info",
        check=_invisible,
        sentence=lambda facts: "the last reply held thinking and nothing that the user can see.",
        doc="Thinking alone keeps the agent going but shows the user nothing.",
    ),
)
