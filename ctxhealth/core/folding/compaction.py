"""Compaction attempts: started, finished, judged; what they did to history and load."""

from __future__ import annotations

import msgspec

from ctxhealth.core.attempts import calls_of, classified, finished_view, started_view, summary_error
from ctxhealth.core.changes import ItemChange
from ctxhealth.core.folding.context import Context
from ctxhealth.core.folding.habits import watch_habit
from ctxhealth.core.folding.history import remove_items
from ctxhealth.core.folding.latches import end_inferred, refresh_latches
from ctxhealth.core.folding.readings import doubt_estimate, learn_trigger, record_point
from ctxhealth.core.folding.relief import (
    NOT_COUNTED,
    decide,
    end_stand_ins,
    heal_summarizer,
    take_before,
)
from ctxhealth.core.limits import fixed_part
from ctxhealth.core.meter import estimate_after, projection
from ctxhealth.core.model import AttemptView, Outcome, Relief
from ctxhealth.core.parts import OPEN_REQUESTS
from ctxhealth.core.state import RECENT_ATTEMPTS, RECENT_MARKS, ChatState, Mark
from ctxhealth.core.wording import number
from ctxhealth.wire.events import CompactionFinished, CompactionStarted

_UNCHANGED = frozenset({Outcome.NOT_NEEDED, Outcome.NOTHING_FOLDABLE, Outcome.REFUSED})
_SKIPPED = frozenset({"skipped", "latched", "blocked", "disabled"})
_FAILED = frozenset(
    {
        Outcome.DURABILITY_FAILED, Outcome.TIMED_OUT, Outcome.SUMMARIZER_FAILED,
        Outcome.NOTHING_FOLDABLE, Outcome.NO_PROGRESS, Outcome.GREW,
    }
)  # fmt: skip


def on_compaction_started(state: ChatState, event: CompactionStarted, context: Context) -> None:
    compactions = state.compactions
    if event.attempt in compactions.running:
        context.odd(f"attempt {event.attempt} started twice")
    elif len(compactions.running) >= OPEN_REQUESTS:
        oldest = next(iter(compactions.running))
        _forget(state, oldest)
    take_before(state, event.before, event.scope, context)
    if event.trigger == "proactive":
        watch_habit(state, event)
    view = started_view(event, context.seq, context.at)
    compactions.running[event.attempt] = view
    if event.lease_s is not None:
        compactions.leases[event.attempt] = context.at + event.lease_s * 1000
    _remember_base(state, event.attempt)
    for record in state.latches.open.values():
        record.rescue_blocked = False
    end_inferred(state, context)
    context.changes.attempts[event.attempt] = view
    context.changes.facts = True


def on_compaction_finished(state: ChatState, event: CompactionFinished, context: Context) -> None:
    compactions = state.compactions
    started = compactions.running.pop(event.attempt, None)
    compactions.leases.pop(event.attempt, None)
    if started is None:
        if any(view.attempt == event.attempt for view in compactions.recent):
            context.odd(f"attempt {event.attempt} finished twice")
            return
        take_before(state, event.before, event.scope, context)
        _remember_base(state, event.attempt)
        end_inferred(state, context)
    view = finished_view(state, event, started, context.seq, context.at)
    view = classified(state, event, view)
    skipped = _is_skipped(state, event, view)
    _count(state, view, skipped)
    if not skipped:
        _apply(state, event, view, context)
    _remember(state, view, skipped, context)
    if not skipped:
        _follow_up(state, view, context)
    refresh_latches(state, context)
    context.changes.facts = True


def expire_leases(state: ChatState, context: Context) -> None:
    """A started attempt past its lease timed out; a late end still replaces that."""
    compactions = state.compactions
    for attempt, until in compactions.leases.items():
        view = compactions.running.get(attempt)
        if view is not None and context.at >= until and view.outcome is Outcome.RUNNING:
            view = msgspec.structs.replace(view, outcome=Outcome.TIMED_OUT)
            compactions.running[attempt] = view
            context.changes.attempts[attempt] = view


def _remember_base(state: ChatState, attempt: str) -> None:
    """Where the next prompt and the history stood when the attempt began; -1 is unknown."""
    load, history = projection(state), state.history.value
    base = state.compactions.base
    base[attempt] = [
        state.meter.added,
        -1 if load is None else load,
        -1 if history is None else history,
    ]
    if len(base) > OPEN_REQUESTS:
        del base[next(iter(base))]


def _forget(state: ChatState, attempt: str) -> None:
    state.compactions.running.pop(attempt, None)
    state.compactions.leases.pop(attempt, None)


def _is_skipped(state: ChatState, event: CompactionFinished, view: AttemptView) -> bool:
    """A latch sent the attempt away: nothing was tried, so it proves nothing about compaction.

    A rescue after an overflow that is sent away is what makes a latch critical.
    """
    if view.freed or view.steps or calls_of(event) not in (0, None) or view.removed:
        return False
    begun = view.started_seq if view.started_seq is not None else view.finished_seq or 0
    held = [r for r in state.latches.open.values() if r.view.set_seq < begun]
    if not held or (calls_of(event) is None and event.reported.lower() not in _SKIPPED):
        return False
    if view.trigger == "reactive" or state.requests.overflow:
        for record in held:
            record.rescue_blocked = True
    return True


def _count(state: ChatState, view: AttemptView, skipped: bool) -> None:
    compactions = state.compactions
    compactions.finished += 1
    compactions.outcomes[view.outcome.value] = compactions.outcomes.get(view.outcome.value, 0) + 1
    if view.outcome not in NOT_COUNTED and not skipped:
        state.requests.above = state.requests.tight = 0
        state.requests.turn_passed = False
    _count_summarizer(state, view)
    if "emptied" in view.flags:
        compactions.emptied, compactions.emptied_seq = view.attempt, view.finished_seq
    if view.outcome is Outcome.GREW:
        compactions.grew_before, compactions.grew_after = view.before, view.after
    elif view.outcome in (Outcome.REDUCED, Outcome.FELL_BACK):
        compactions.grew_before = compactions.grew_after = None
        compactions.emptied = None
    state.meter.mismatch = view.outcome is Outcome.NOT_COMPARABLE
    compactions.ineffective = "ineffective" in view.flags
    compactions.lossy = view.attempt if view.lossy else None
    if view.outcome is Outcome.REFUSED:
        compactions.refused = view.reason or view.reported


def _count_summarizer(state: ChatState, view: AttemptView) -> None:
    compactions = state.compactions
    summarizer = view.summarizer
    if view.outcome is Outcome.SUMMARIZER_FAILED or view.error_class is not None:
        compactions.summarizer_row += 1
        compactions.summarizer_calls += (summarizer.calls or 0) if summarizer else 0
        if summarizer is not None and summarizer.input is not None:
            compactions.summarizer_input = (compactions.summarizer_input or 0) + summarizer.input
        compactions.summarizer_class = view.error_class
        compactions.summarizer_model = summarizer.model if summarizer else state.facts.utility_model
    elif view.outcome in (Outcome.REDUCED, Outcome.FELL_BACK):
        _count_success(state, view)


def _count_success(state: ChatState, view: AttemptView) -> None:
    """Tokens were freed. What a cut freed where the call failed proves nothing of the summarizer.

    A fallback beside a summary that succeeded was needed for more than that summary.
    """
    compactions, summarizer = state.compactions, view.summarizer
    error = summary_error(summarizer)
    if summarizer is None or (error is None and not summarizer.calls):
        return
    if error is None:
        end_stand_ins(compactions)
        if view.outcome is Outcome.REDUCED:
            heal_summarizer(compactions, view)
        return
    compactions.stand_ins += 1
    compactions.stand_in_calls += summarizer.calls or 0
    if summarizer.input is not None:
        compactions.stand_in_input = (compactions.stand_in_input or 0) + summarizer.input
    compactions.summarizer_class, compactions.summarizer_model = error, summarizer.model


def _apply(
    state: ChatState, event: CompactionFinished, view: AttemptView, context: Context
) -> None:
    """What changed in the history; a load read before that is no longer one."""
    if event.removed:
        remove_items(state, event.removed, context)
    _add_items(state, event, context)
    if view.outcome in _UNCHANGED or not _changed(view):
        return
    _set_history(state, view)
    state.history.compacted = True
    meter = state.meter
    if meter.doubt is not None or (meter.value is None and view.after is None):
        meter.doubt = None
    meter.generation = state.compactions.finished
    scope = view.after_scope or view.scope
    estimate = estimate_after(state, view.after, scope)
    meter.pending, meter.estimate = True, estimate
    if estimate is not None and estimate == state.limits.window:
        doubt_estimate(state, f"a count of exactly the window, {number(estimate)}, looks clamped")
    meter.source = "pending"
    meter.at, meter.seq, meter.request = context.at, context.seq, None
    meter.added_before = meter.added
    meter.previous = None
    meter.identical = 0
    record_point(state, context)


def _changed(view: AttemptView) -> bool:
    """Whether the attempt left another history behind than it found."""
    if view.removed or view.added or "emptied" in view.flags:
        return True
    if view.outcome in (Outcome.REDUCED, Outcome.FELL_BACK, Outcome.NOT_COMPARABLE):
        return True
    if view.freed is None:
        # Nobody says what is left: until a request is counted the load is not known.
        return view.outcome is Outcome.UNKNOWN
    return view.freed != 0


def _add_items(state: ChatState, event: CompactionFinished, context: Context) -> None:
    for item in event.added or ():
        context.changes.items.append(
            ItemChange(
                "add",
                item.id,
                context.seq,
                context.at,
                "user" if item.kind == "summary" else None,
                item.kind,
                item.tokens,
                item.in_ or "current",
            )
        )


def _set_history(state: ChatState, view: AttemptView) -> None:
    """The history by the after-count; where its parts are not told they become an estimate."""
    history = state.history
    after = _history_after(state, view)
    if after is None:
        if view.freed is None:
            history.value = None
        elif history.value is not None:
            history.value = max(0, history.value - view.freed)
    else:
        history.value, history.source = after, "agent"
    total = history.value
    history.estimate = True
    if total is None:
        history.bulks = history.topics = history.current = None
        return
    current = min(history.current or 0, total)
    history.current, history.topics = current, None
    history.bulks = total - current


def _history_after(state: ChatState, view: AttemptView) -> int | None:
    if view.after is None:
        return None
    if (view.after_scope or view.scope) == "history":
        return view.after
    fixed = fixed_part(state)
    if fixed is None:
        return None
    return max(0, view.after - fixed - (state.history.extras or 0))


def _remember(state: ChatState, view: AttemptView, skipped: bool, context: Context) -> None:
    compactions = state.compactions
    compactions.recent.append(view)
    if len(compactions.recent) > RECENT_ATTEMPTS:
        del compactions.recent[0]
    context.changes.attempts[view.attempt] = view
    automatic = view.trigger not in ("manual", "forced")
    if view.outcome not in NOT_COUNTED and automatic and not skipped:
        compactions.marks.append(
            Mark(
                attempt=view.attempt,
                requests=state.requests.answered,
                turns=state.turns.user_count,
                relief=Relief.UNCONFIRMED.value,
                outcome=view.outcome.value,
                # Folding while nobody works rests on time, not on need.
                needed=None if view.trigger == "idle" else view.needed,
                freed=view.freed,
            )
        )
        if len(compactions.marks) > RECENT_MARKS:
            del compactions.marks[0]
        state.turns.attempts += 1
    _learn_trigger(state, view, context)


def _learn_trigger(state: ChatState, view: AttemptView, context: Context) -> None:
    """Only an attempt that worked shows where the agent starts: a stuck one starts everywhere."""
    if view.trigger != "proactive" or view.scope != "prompt" or view.before is None:
        return
    if "ineffective" in view.flags:
        return
    much = view.freed is not None and view.freed >= view.before // 2
    worked = view.outcome in (Outcome.REDUCED, Outcome.FELL_BACK)
    if worked and (much or not state.compactions.no_relief):
        learn_trigger(state, view.before, context)


def _follow_up(state: ChatState, view: AttemptView, context: Context) -> None:
    """Relief at once where nothing was freed though it was needed; else the next request tells."""
    compactions = state.compactions
    if view.outcome in NOT_COUNTED:
        return
    freed_nothing = view.freed is not None and view.freed <= 0
    if view.needed and (freed_nothing or (view.freed is None and view.outcome in _FAILED)):
        compactions.unjudged = None
        decide(state, view, Relief.NOT_RELIEVED, context)
        return
    compactions.unjudged = view.attempt
    compactions.unjudged_generation = compactions.finished
    if "ineffective" in view.flags and state.limits.trigger_source != "declared":
        # By the agent's own count nearly all of it is still there; a reading may yet correct it.
        decide(state, view, Relief.NOT_RELIEVED, context)
