"""Compactions that fire again and again."""

from __future__ import annotations

from ctxhealth.core.advice import advise, against, manual
from ctxhealth.core.findings.definition import (
    CRITICAL,
    WARNING,
    Definition,
    Facts,
    Verdict,
    fallback_advice,
    int_of,
    text_of,
)
from ctxhealth.core.latching import is_pressed
from ctxhealth.core.meter import load_now
from ctxhealth.core.model import Advice, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState, Mark
from ctxhealth.core.wording import number, plural


def _looping(state: ChatState, t: Thresholds, at: int) -> Verdict:
    marks = state.compactions.marks
    if len(marks) < t.loop_compactions:
        return None
    row = _in_one_turn(state, t)
    if row is not None:
        return _verdict(state, "requests", row)
    turns = state.turns.row_with_attempt + (1 if state.turns.attempts else 0)
    recent = marks[-t.loop_turn_row :]
    unhelpful = [m for m in recent if _no_relief(m) and m.outcome != "summarizer_failed"]
    if turns >= t.loop_turn_row and len(unhelpful) >= t.loop_turn_row:
        return _verdict(state, "turns", recent)
    return None


def _in_one_turn(state: ChatState, t: Thresholds) -> list[Mark] | None:
    """At least 3 within 10 requests and fewer than 2 user turns, failed summaries left out."""
    requests, turns = state.requests.answered, state.turns.user_count
    recent = [
        mark
        for mark in state.compactions.marks
        if requests - mark.requests <= t.loop_requests
        and turns - mark.turns < t.loop_turns
        and mark.outcome != "summarizer_failed"
    ]
    return recent if len(recent) >= t.loop_compactions else None


def _no_relief(mark: Mark) -> bool:
    return mark.relief != "relieved" or mark.needed is False


def _verdict(state: ChatState, form: str, marks: list[Mark]) -> Verdict:
    helped = all(mark.relief == "relieved" and mark.needed is not False for mark in marks)
    doubtful = bool({"meter_unreliable", "cumulative_usage"} & state.findings.keys())
    severity = WARNING if helped or doubtful else CRITICAL
    refills = state.history.biggest_new if helped else None
    cause = None
    if "floor_exceeds_budget" in state.findings:
        cause = "floor"
    elif "reserve_exceeds_window" in state.findings:
        cause = "reserve"
    elif state.meter.doubt is not None or doubtful:
        cause = "meter"
    elif "window_conflict" in state.findings and state.limits.window_source == "evidence":
        cause = f"window {state.facts.window}"
    elif _is_idle(state, marks):
        cause = "idle"
    count = len(marks)
    seen = state.findings.get("looping")
    if seen is not None and seen.facts[0] == form:
        count = max(count, int_of(seen.facts[1]))
        if state.compactions.finished > int_of(seen.facts[2]):
            count = int_of(seen.facts[1]) + state.compactions.finished - int_of(seen.facts[2])
    return (severity, form, count, state.compactions.finished, helped, refills, cause)


def _is_idle(state: ChatState, marks: list[Mark]) -> bool:
    """Nothing was taken out each time, and no count says that there is too much."""
    load, budget = load_now(state), state.limits.budget
    if is_pressed(state) or (load is not None and budget is not None and load > budget):
        return False
    return not state.requests.overflow and all(
        mark.outcome in ("no_progress", "nothing_foldable") for mark in marks
    )


def _say(facts: Facts) -> str:
    form, count, _, helped, refills, cause = facts
    where = "without a user turn between" if form == "requests" else "one in each turn"
    text = f"{plural(int_of(count), 'compaction')}, {where}"
    if helped:
        text += ", each with real relief"
        text += f"; {text_of(refills)} refills the context" if refills else ""
    else:
        text += ", without relief"
    if cause == "floor":
        text += ": the part that compaction cannot touch is larger than the budget"
    elif cause == "reserve":
        text += ": the reserve leaves no room in the window"
    elif cause == "meter":
        text += "; the count that starts them cannot be right"
    elif cause == "idle":
        text += ": nothing was taken out, and no count says that size is the reason"
    elif cause is not None:
        window = int(text_of(cause).removeprefix("window "))
        text += f": the window of {number(window)} that they go by is not the model's"
    return text + "."


def _advise(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    cause = text_of(facts[5])
    if cause == "idle":
        look = "look at the error that starts the compactions, and at the model's window."
        return (advise(state, "stop_turn", f"Stop the turn and {look}"),)
    if cause in ("floor", "reserve", "meter") or cause.startswith("window"):
        limits = "correct the limits: compaction cannot help here."
        stop = advise(state, "stop_turn", f"Stop the turn and {limits}")
        return (stop, manual(limits[:1].upper() + limits[1:]))
    if facts[3]:
        return (manual("Let the agent cut what its tools return, or use a larger window."),)
    return (fallback_advice(state), manual("If it goes on, stop the turn."))


def _against(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    if facts[5] in ("floor", "reserve"):
        return (against("compact_fallback", "There is nothing left that it could free."),)
    if facts[5] == "idle":
        return (against("compact_fallback", "Nothing shows that size is the reason."),)
    return ()


DEFINITIONS = (
    Definition(
        code="looping",
        state=State.LOOPING,
        title="Compaction in a loop",
        severity="critical; warning on an unreliable meter or with real relief each time",
        check=_looping,
        sentence=_say,
        recommended=_advise,
        discouraged=_against,
        doc="At least 3 automatic compactions within 10 requests and fewer than 2 user turns, or "
        "one in each of 3 turns, without relief or with none needed. Failed summaries are "
        "`stalled`, not this. However many there are, it is one finding with a count.",
        actions=("compact_fallback", "stop_turn", "manual"),
    ),
)
