"""Compaction that brings no relief: stalled, emptied, failing summarizer, growth."""

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
from ctxhealth.core.meter import load_now, projection
from ctxhealth.core.model import Advice, State
from ctxhealth.core.parts import Fact
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState, Compactions
from ctxhealth.core.wording import number, plural

ERRORS = {
    "quota": "has no quota left",
    "provider": "gets errors from its provider",
    "network": "cannot be reached",
    "timeout": "does not answer in time",
    "overflow": "gets more input than its window holds",
    "empty": "answers nothing",
    "malformed": "answers in the wrong form",
    "truncated": "is cut off before its end",
    "rate_limit": "has reached its rate limit",
    "auth": "is refused for its credentials",
}
_WHY = {
    "nothing_foldable": "nothing could be folded",
    "no_progress": "nothing was removed",
    "grew": "the result was larger than what it replaced",
    "timed_out": "they did not end in time",
    "durability_failed": "the agent could not store the result",
}


# One failed summary that something stood in for is no news; two are a summarizer that is dead.
_STAND_INS = 2
_MEND = (
    "Put the summarizer right: its quota, its credentials or another model. Until then every "
    "compaction loses what a summary would keep."
)


def say_error(error: str | None) -> str:
    """What the summarizer does, as the end of a sentence whose subject it is."""
    if error in (None, "", "failed", "other"):
        return "fails"
    return ERRORS.get(error or "", f"fails ({error})")


def size_is_reason(state: ChatState) -> bool:
    """Some count says that the context is too large; what is not known says nothing."""
    full = budget_reached(state, load_now(state)) or budget_reached(state, projection(state))
    return full or bool(is_pressed(state)) or state.requests.overflow


def budget_reached(state: ChatState, value: int | None) -> bool:
    budget = state.limits.budget
    return value is not None and budget is not None and value >= budget


def _stalled(state: ChatState, t: Thresholds, at: int) -> Verdict:
    compactions = state.compactions
    row = compactions.no_relief
    if not row:
        return None
    load, ahead = load_now(state), projection(state)
    full = budget_reached(state, load) or budget_reached(state, ahead)
    if row < t.stalled_attempts and not full:
        return None
    own = state.limits.trigger_source in ("declared", "learned")
    pressed = bool(own and is_pressed(state))
    calls = compactions.no_relief_calls if compactions.no_relief_calls_known else None
    return (
        CRITICAL if pressed or full else WARNING,
        row,
        compactions.no_relief_freed if compactions.no_relief_freed_known else None,
        compactions.no_relief_from,
        compactions.no_relief_scope,
        calls,
        compactions.no_relief_cause,
        compactions.summarizer_model,
        compactions.no_relief_inferred,
    )


def _say_stalled(facts: Facts) -> str:
    row, freed, before, scope, calls, cause, model, inferred = facts
    if int_of(inferred) == int_of(row):
        return _say_inferred(int_of(row), before)
    text = f"{plural(int_of(row), 'compaction')} "
    text += "gave no relief" if freed is None else f"freed {number(int_of(freed))}"
    if before is not None:
        text += f"{' of' if freed is not None else ' from'} {number(int_of(before))}"
        text += f" {text_of(scope)} tokens"
    elif freed is not None:
        text += " tokens"
    because = _because(text_of(cause), text_of(model))
    text += f" because {because}" if because else ""
    if calls is not None:
        text += f" ({plural(int_of(calls), 'summarizer call')})"
    if inferred:
        text += f"; {number(int_of(inferred))} of them inferred from a load that stays high"
    return text + "."


def _say_inferred(row: int, before: Fact) -> str:
    stays = f"stays at {number(int_of(before))} and more" if before is not None else "stays high"
    return (
        f"{plural(row, 'failed compaction')}, inferred from a load that {stays}, where this agent "
        "compacts by itself; the transcript records no attempt."
    )


def _because(cause: str, model: str) -> str:
    if cause in _WHY:
        return _WHY[cause]
    if cause in ERRORS or cause in ("failed", "other"):
        who = f"the utility model {model}" if model else "the utility model"
        return f"{who} {say_error(cause)}"
    if cause in ("reduced", "fell_back"):
        return "what they freed was not enough"
    return ""


def _advise_stalled(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    if state.compactions.no_relief_cause == "no_progress" and not size_is_reason(state):
        return (manual("Stop these attempts: nothing is left in what they are to compact."),)
    return (fallback_advice(state),)


NO_LATCH = "No latch is set: there is nothing to clear."
UNREPORTED = (
    "The agent reports no latch; one is inferred. Asking it to clear will most likely be refused."
)


def _against_stalled(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    compactions = state.compactions
    found: list[Advice] = []
    if compactions.summarizer_row:
        calls = plural(compactions.summarizer_row, "time")
        why = f"The summarizer failed {calls}: it {say_error(compactions.summarizer_class)}."
        found.append(against("compact_summarize", why))
    standing = state.latches.open.values()
    if all(record.view.inferred for record in standing):
        found.append(against("clear_latch", UNREPORTED if standing else NO_LATCH))
    return tuple(found)


def _emptied(state: ChatState, t: Thresholds, at: int) -> Verdict:
    if state.compactions.emptied is None:
        return None
    return (CRITICAL, state.compactions.emptied)


def _advise_emptied(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (
        advise(state, "restore_backup", "Restore the backup of the history, then fall back."),
        fallback_advice(state),
    )


def _failing(state: ChatState, t: Thresholds, at: int) -> Verdict:
    """Failures that left the context as it was; and those where something else made room.

    One of the latter is an accident. A row of them is a summarizer that is dead though nobody
    waits: never critical while there is relief.
    """
    compactions = state.compactions
    own = compactions.summarizer_row
    row = own + compactions.stand_ins
    if not own and row < _STAND_INS:
        return None
    relieved = not own and not compactions.no_relief
    worst = row if compactions.no_relief else own
    return (
        CRITICAL if worst >= t.summarizer_failures else WARNING,
        row,
        compactions.summarizer_calls + compactions.stand_in_calls or None,
        _burnt_input(compactions),
        compactions.summarizer_class,
        compactions.summarizer_model,
        relieved,
    )


def _burnt_input(compactions: Compactions) -> int | None:
    known = (compactions.summarizer_input, compactions.stand_in_input)
    given = [tokens for tokens in known if tokens is not None]
    return sum(given) if given else None


def _say_failing(facts: Facts) -> str:
    row, calls, tokens, error, model = facts[:5]
    # Incidents keep facts as they were judged then: older ones have no word on relief.
    relieved = len(facts) > 5 and facts[5]
    who = f"the summarizer {text_of(model)}" if model else "the summarizer"
    text = f"{who} failed in "
    text += "the last compaction" if row == 1 else f"{number(int_of(row))} compactions in a row"
    details: list[str] = []
    if calls is not None:
        details.append(plural(int_of(calls), "call"))
    if tokens is not None:
        details.append(f"{number(int_of(tokens))} input tokens without a result")
    if details:
        text += f" ({', '.join(details)})"
    why = say_error(text_of(error))
    text += "" if why == "fails" else f": it {why}"
    return f"{text}; something else made room each time." if relieved else f"{text}."


def _advise_failing(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    """Where compaction has relief without it, only the summarizer is left to put right."""
    return (manual(_MEND),) if facts[5] else _advise_stalled(state, facts)


def _against_failing(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (against("compact_summarize", "It calls the same summarizer again."),)


def _grew(state: ChatState, t: Thresholds, at: int) -> Verdict:
    compactions = state.compactions
    before, after = compactions.grew_before, compactions.grew_after
    if before is None or after is None:
        return None
    full = budget_reached(state, projection(state)) or budget_reached(state, after)
    # A count in doubt proves no growth: a warning until a request is counted.
    sure = state.meter.doubt is None or not state.meter.pending
    return (CRITICAL if full and sure else WARNING, before, after)


def _say_grew(facts: Facts) -> str:
    before, after = int_of(facts[0]), int_of(facts[1])
    times = f" (x{after / before:.1f})" if before and after / before >= 1.2 else ""
    return (
        f"a compaction made the context larger: {number(before)} to {number(after)}, "
        f"{number(after - before)} tokens more{times}."
    )


def _advise_grew(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return (
        advise(state, "restore_backup", "Restore the history from before that compaction."),
        fallback_advice(state),
    )


DEFINITIONS = (
    Definition(
        code="stalled",
        state=State.STALLED,
        title="Compaction brings no relief",
        severity="critical at or above a declared or learned trigger or the budget, else warning",
        check=_stalled,
        sentence=_say_stalled,
        recommended=_advise_stalled,
        discouraged=_against_stalled,
        doc="The last 2 attempts gave no relief, or 1 with the load or its projection over the "
        "budget. Attempts skipped by a latch do not count; those that only a load that stays tells "
        "of are said to be inferred. Closes at the first relief, also where it came by other "
        "means: after 3 requests in a row well below the agent's own trigger.",
        actions=("compact_fallback", "manual"),
    ),
    Definition(
        code="emptied",
        state=State.STALLED,
        title="Content was lost in a compaction",
        severity="critical",
        check=_emptied,
        sentence=lambda facts: "a compaction replaced content by a blank or by an error text.",
        recommended=_advise_emptied,
        doc="Whatever it freed: the summary that should stand there is missing. Closes at the "
        "next answered turn.",
        actions=("restore_backup", "compact_fallback"),
    ),
    Definition(
        code="summarizer_failing",
        state=State.STALLED,
        title="The summarizer fails",
        severity="warning, critical from 3 in a row; never while something else gives relief",
        check=_failing,
        sentence=_say_failing,
        recommended=_advise_failing,
        discouraged=_against_failing,
        doc="Compactions failed at their summarizer. Closes when a summary succeeds, or with the "
        "relief that nothing waits for any more; after one that somebody asked for below the "
        "trigger, at the next answered turn. Where a step without a model made room instead, one "
        "failure is none; from 2 in a row it opens, and only a summary that succeeds closes it.",
        actions=("compact_fallback", "manual"),
    ),
    Definition(
        code="grew",
        state=State.STALLED,
        title="A compaction made the context larger",
        severity="warning, critical at or above the budget",
        check=_grew,
        sentence=_say_grew,
        recommended=_advise_grew,
        doc="After is above before by more than max(1%, 200 tokens), what was added meanwhile "
        "subtracted. Closes at the next answered turn or the next real reduction.",
        actions=("restore_backup", "compact_fallback"),
    ),
)
