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
from ctxhealth.core.findings.stalls import size_is_reason
from ctxhealth.core.model import Advice, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState, Mark
from ctxhealth.core.wording import number, plural

_HELP = {
    "helped": ", each with real relief",
    "mixed": ", not each with relief",
    "useless": ", without relief",
    "unknown": "; whether they help is not known",
}


def _looping(state: ChatState, t: Thresholds, at: int) -> Verdict:
    marks = state.compactions.marks
    if len(marks) < t.loop_compactions:
        return None
    row = _in_one_turn(state, t)
    if row is not None:
        return _verdict(state, "requests", row, _word_in_one_turn(_judged(row, t.loop_refire), t))
    turns = state.turns.row_with_attempt + (1 if state.turns.attempts else 0)
    if turns < t.loop_turn_row:
        return None
    recent = marks[-t.loop_turn_row :]
    if any(mark.outcome == "summarizer_failed" for mark in recent):
        return None
    word = _word_over_turns(_judged(recent, None))
    return None if word is None else _verdict(state, "turns", recent, word)


def _in_one_turn(state: ChatState, t: Thresholds) -> list[Mark] | None:
    """At least 3 within 10 requests and fewer than 2 user turns, failed summaries left out."""
    requests, turns = state.requests.answered, state.turns.user_count
    oldest = state.compactions.marks[-t.loop_compactions]
    if requests - oldest.requests > t.loop_requests or turns - oldest.turns >= t.loop_turns:
        return None
    recent = [
        mark
        for mark in state.compactions.marks
        if requests - mark.requests <= t.loop_requests
        and turns - mark.turns < t.loop_turns
        and mark.outcome != "summarizer_failed"
    ]
    return recent if len(recent) >= t.loop_compactions else None


def _judged(marks: list[Mark], refire: int | None) -> list[str]:
    """Of each: helped, useless, unknown, or open (the newest, which no reading has judged yet).

    One that nobody counted, and that fired again within ``refire`` requests of the same turn, did
    not help either.
    """
    return [_judge(mark, marks[at + 1 : at + 2], refire) for at, mark in enumerate(marks)]


def _judge(mark: Mark, later: list[Mark], refire: int | None) -> str:
    if mark.needed is False or mark.relief == "not_relieved":
        return "useless"
    if mark.relief == "relieved":
        return "helped"
    if not later:
        return "open"
    again = refire is not None and later[0].requests - mark.requests <= refire
    return "useless" if again else "unknown"


def _word_in_one_turn(judged: list[str], t: Thresholds) -> str:
    if judged.count("useless") >= t.loop_compactions:
        return "useless"
    if "useless" in judged:
        return "mixed"
    return "unknown" if "unknown" in judged else "helped"


def _word_over_turns(judged: list[str]) -> str | None:
    """None where one helped, or where the newest may yet turn out to have helped."""
    if "helped" in judged or ("open" in judged and "useless" in judged):
        return None
    return "useless" if all(word == "useless" for word in judged) else "unknown"


def _verdict(state: ChatState, form: str, marks: list[Mark], word: str) -> Verdict:
    doubtful = bool({"meter_unreliable", "cumulative_usage"} & state.findings.keys())
    severity = WARNING if word != "useless" or doubtful else CRITICAL
    refills = state.history.biggest_new if word == "helped" else None
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
    return (severity, form, count, state.compactions.finished, word, refills, cause)


def _is_idle(state: ChatState, marks: list[Mark]) -> bool:
    """Nothing was taken out each time, and no count says that there is too much."""
    idle = ("no_progress", "nothing_foldable")
    return not size_is_reason(state) and all(mark.outcome in idle for mark in marks)


def _say(facts: Facts) -> str:
    form, count, _, word, refills, cause = facts
    where = "without a user turn between" if form == "requests" else "one in each turn"
    text = f"{plural(int_of(count), 'compaction')}, {where}"
    text += _HELP[text_of(word)]
    text += f"; {text_of(refills)} refills the context" if refills else ""
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
        if not stop.available:
            return (manual(stop.text),)
        return (stop, manual(limits[:1].upper() + limits[1:]))
    if facts[3] == "helped":
        return (manual("Let the agent cut what its tools return, or use a larger window."),)
    fallback = fallback_advice(state)
    if not fallback.available:
        # Its own compaction is what loops.
        by_hand = "Stop the turn in the agent itself, then start a new chat from a good summary."
        return (manual(by_hand),)
    return (fallback, manual("If it goes on, stop the turn."))


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
        severity="critical from 3 without relief; warning on an unreliable meter, with real relief "
        "or where nobody counts",
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
