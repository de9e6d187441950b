"""Did a compaction help: judged by the next request built after it (domain 4)."""

from __future__ import annotations

import msgspec

from ctxhealth.core.attempts import calls_made
from ctxhealth.core.folding.context import Context
from ctxhealth.core.folding.readings import learn_trigger, own_count
from ctxhealth.core.latching import is_pressed
from ctxhealth.core.limits import crosses
from ctxhealth.core.meter import load_now, trigger_measure
from ctxhealth.core.model import AttemptView, Outcome, Relief
from ctxhealth.core.state import ChatState, Compactions
from ctxhealth.engine.outcome import AttemptFacts, classify_outcome

# These say nothing about whether compaction works: nothing was wanted, or somebody said no.
NOT_COUNTED = frozenset({Outcome.NOT_NEEDED, Outcome.CANCELLED, Outcome.REFUSED})


def take_before(state: ChatState, before: int | None, scope: str, context: Context) -> None:
    """What the agent counts where an attempt begins is a reading where there is no better one.

    It also tells whether the attempt before this one helped.
    """
    if not before:
        return
    if scope == "history":
        if state.history.value is None:
            state.history.value, state.history.source = before, "agent"
    elif state.meter.pending or state.meter.source not in ("provider", "error"):
        own_count(state, before, "agent", None, state.meter.added, context)
        judge_relief(state, state.compactions.finished, context)


def judge_relief(state: ChatState, generation: int, context: Context) -> None:
    """The reading of a request built after the newest attempt decides that attempt's relief."""
    compactions = state.compactions
    if compactions.unjudged is None or generation < compactions.unjudged_generation:
        return
    view = find_attempt(state, compactions.unjudged)
    if view is None:
        compactions.unjudged = None
        return
    if view.after is None and view.outcome is Outcome.UNKNOWN:
        view = _measure(state, view, context)
    _watch_fall(state, view)
    relieved = _is_relieved(state, view, context.rules.thresholds.relieved_share)
    if relieved is None:
        return
    compactions.unjudged = None
    decide(state, view, Relief.RELIEVED if relieved else Relief.NOT_RELIEVED, context)


def overflow_after_attempt(state: ChatState, generation: int, context: Context) -> None:
    """The next request after the attempt overflowed: it brought no relief."""
    compactions = state.compactions
    if compactions.unjudged is None or generation < compactions.unjudged_generation:
        return
    view = find_attempt(state, compactions.unjudged)
    compactions.unjudged = None
    if view is not None:
        decide(state, view, Relief.NOT_RELIEVED, context)


def decide(state: ChatState, view: AttemptView, relief: Relief, context: Context) -> None:
    """Write an attempt's relief down and count the row of attempts without any."""
    if view.relief is relief:
        return
    replace_attempt(state, msgspec.structs.replace(view, relief=relief), context)
    for mark in reversed(state.compactions.marks):
        if mark.attempt == view.attempt:
            mark.relief = relief.value
            break
    if relief is Relief.RELIEVED:
        _relieved(state)
    else:
        _not_relieved(state, view)


def _watch_fall(state: ChatState, view: AttemptView) -> None:
    """A count that does not fall after a real reduction is a running total, not a load."""
    base = state.compactions.base.get(view.attempt)
    load = load_now(state)
    real = view.outcome in (Outcome.REDUCED, Outcome.FELL_BACK) and "ineffective" not in view.flags
    if not real or load is None or base is None or base[1] < 0:
        return
    meter = state.meter
    meter.no_fall = meter.no_fall + 1 if load >= base[1] else 0


def _measure(state: ChatState, view: AttemptView, context: Context) -> AttemptView:
    """Nobody said what is left: the next request's count is the after, and gives the outcome."""
    load, base = load_now(state), state.compactions.base.get(view.attempt)
    if load is None or view.before is None or view.scope != "prompt":
        return view
    meanwhile = max(0, state.meter.added_before - base[0]) if base else 0
    facts = AttemptFacts(
        before=view.before,
        after=load,
        before_scope="prompt",
        after_scope="prompt",
        meanwhile=meanwhile,
        calls=calls_made(view),
    )
    name, flags = classify_outcome(facts)
    view = msgspec.structs.replace(
        view,
        outcome=Outcome(name),
        after=load,
        freed=facts.freed,
        meanwhile=meanwhile,
        flags=(*view.flags, *flags, "measured"),
    )
    _recount(state.compactions, view)
    if view.outcome is Outcome.GREW:
        state.compactions.grew_before, state.compactions.grew_after = view.before, view.after
    if view.outcome is Outcome.REDUCED and view.trigger == "proactive":
        learn_trigger(state, view.before or 0, context)
    return view


def _recount(compactions: Compactions, view: AttemptView) -> None:
    """An attempt that counted as unknown has an outcome now."""
    outcomes = compactions.outcomes
    outcomes["unknown"] = outcomes.get("unknown", 0) - 1
    if outcomes["unknown"] <= 0:
        del outcomes["unknown"]
    outcomes[view.outcome.value] = outcomes.get(view.outcome.value, 0) + 1
    for mark in reversed(compactions.marks):
        if mark.attempt == view.attempt:
            mark.outcome, mark.freed = view.outcome.value, view.freed
            break
    if view.outcome is Outcome.REDUCED and view.summarizer and view.summarizer.calls:
        heal_summarizer(compactions, view)


def heal_summarizer(compactions: Compactions, view: AttemptView) -> None:
    """A summary succeeded: the row of failures is over."""
    compactions.summarizer_row = compactions.summarizer_calls = 0
    compactions.summarizer_input = compactions.summarizer_class = None
    compactions.summarizer_fixed_seq = view.finished_seq
    end_stand_ins(compactions)


def end_stand_ins(compactions: Compactions) -> None:
    """A summary succeeded, so nothing has to stand in for one."""
    compactions.stand_ins = compactions.stand_in_calls = 0
    compactions.stand_in_input = None


def _is_relieved(state: ChatState, view: AttemptView, share: float) -> bool | None:
    limits = state.limits
    if limits.trigger is not None and limits.trigger_source in ("declared", "learned"):
        measure = trigger_measure(state)
        if measure is None:
            return None
        if crosses(measure, limits.trigger, limits.trigger_inclusive):
            return False
        # Where the agent starts is learned from samples: a token below them is no relief.
        learned = limits.trigger_source == "learned"
        return not learned or _clearly_smaller(state, view, share) is not False
    return _clearly_smaller(state, view, share)


def _clearly_smaller(state: ChatState, view: AttemptView, share: float) -> bool | None:
    """With no trigger of the agent's own: relieved when clearly smaller than before."""
    base = state.compactions.base.get(view.attempt)
    if view.scope == "history":
        measure, before = state.history.value, view.before
    else:
        measure = load_now(state)
        before = base[1] if base and base[1] >= 0 else view.before
    if measure is None or before is None:
        return None
    return measure <= share * before


def _relieved(state: ChatState) -> None:
    compactions = state.compactions
    compactions.no_relief = compactions.no_relief_calls = compactions.no_relief_freed = 0
    compactions.no_relief_inferred = compactions.eased = 0
    compactions.no_relief_calls_known = compactions.no_relief_freed_known = True
    compactions.no_relief_from = compactions.no_relief_cause = None
    # The summarizer may still be dead, but nothing waits for it; its next failure says so again.
    compactions.summarizer_row = compactions.summarizer_calls = 0
    compactions.summarizer_input = None


def _not_relieved(state: ChatState, view: AttemptView) -> None:
    compactions = state.compactions
    compactions.no_relief += 1
    compactions.eased = 0
    compactions.no_relief_inferred += "inferred" in view.flags
    calls = calls_made(view)
    if calls is None:
        compactions.no_relief_calls_known = False
    else:
        compactions.no_relief_calls += calls
    compactions.no_relief_freed += max(0, view.freed or 0)
    if view.freed is None and view.outcome is Outcome.UNKNOWN:
        compactions.no_relief_freed_known = False
    if view.before is not None and compactions.no_relief_from is None:
        compactions.no_relief_from, compactions.no_relief_scope = view.before, view.scope
    compactions.no_relief_cause = cause_of(view)


def ease(state: ChatState, context: Context) -> None:
    """The history became small by other means than compaction: nothing waits for relief.

    One low count may be of a side request, so it takes as many in a row as end an incident; the
    trigger must be the agent's own.
    """
    compactions, limits, t = state.compactions, state.limits, context.rules.thresholds
    if not compactions.no_relief and not compactions.summarizer_row:
        return
    measure, own = trigger_measure(state), limits.trigger_source in ("declared", "learned")
    if not own or measure is None or limits.trigger is None or compactions.unjudged is not None:
        return
    low = measure <= t.relieved_share * limits.trigger
    compactions.eased = compactions.eased + 1 if low else 0
    if compactions.eased >= t.incident_calm_requests:
        _relieved(state)


def forget_asked_for(state: ChatState) -> None:
    """What somebody asked for and nothing needed has failed: past once a turn is answered."""
    recent = state.compactions.recent
    if not recent or recent[-1].trigger not in ("manual", "forced") or recent[-1].needed:
        return
    if is_pressed(state) is False:
        state.compactions.unjudged = None
        _relieved(state)


def cause_of(view: AttemptView) -> str | None:
    """The one word that explains the attempt: the summarizer's error class, else its reason."""
    if view.outcome is Outcome.SUMMARIZER_FAILED:
        return view.error_class or "failed"
    return view.outcome.value


def find_attempt(state: ChatState, attempt: str) -> AttemptView | None:
    for view in reversed(state.compactions.recent):
        if view.attempt == attempt:
            return view
    return None


def replace_attempt(state: ChatState, view: AttemptView, context: Context) -> None:
    recent = state.compactions.recent
    for index, entry in enumerate(recent):
        if entry.attempt == view.attempt:
            recent[index] = view
            break
    context.changes.attempts[view.attempt] = view
