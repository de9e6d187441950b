"""Is a latch justified, when does it lapse, and what is right to do about it (domain 5)."""

from __future__ import annotations

import msgspec

from ctxhealth.core.advice import (
    FALLBACK,
    advise,
    against,
    clear_latch_advice,
    manual,
    possible,
    sensible,
)
from ctxhealth.core.limits import crosses
from ctxhealth.core.meter import load_now, trigger_measure
from ctxhealth.core.model import Advice, LatchView, Relief
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState, LatchRecord
from ctxhealth.core.wording import clock, number, plural
from ctxhealth.wire.events import LatchSet

_REPEATS_FAILURE = "Clearing it repeats a summarizer call that failed."


def latch_kind(event: LatchSet, calls: int | None, failures: int) -> str:
    """The kind that the evidence supports; the agent's own word where there is no evidence."""
    kind = event.kind
    if kind in (None, "structural", "summarizer") and calls is not None:
        return "structural" if calls == 0 else "summarizer"
    if kind is not None:
        return kind
    if event.holder is not None:
        return "lock_held"
    if event.release is not None and event.release.until is not None:
        return "cooldown"
    return "summarizer" if failures else "unknown"


def release_rule(event: LatchSet) -> str:
    """When the latch lapses by itself, in words."""
    release = event.release
    rules: list[str] = []
    if release is not None:
        if release.until is not None:
            rules.append(f"at {clock(release.until)}")
        if release.input_changed:
            rules.append("when the input changes")
        if release.growth is not None:
            rules.append(f"after {number(release.growth)} tokens more")
        if release.success:
            rules.append("after a success")
        if release.turn_end:
            rules.append("at the turn's end")
    if not rules and event.scope != "chat":
        rules.append(_SCOPE_END[event.scope])
    return " or ".join(rules) or "not by itself"


_SCOPE_END = {
    "step": "with this step",
    "send": "with this request",
    "turn": "at the turn's end",
    "process": "when the agent restarts",
}


def describe_latch(state: ChatState, record: LatchRecord, thresholds: Thresholds) -> LatchView:
    """The latch as of now: justified or not, why, and the advice."""
    justified, why = _judge(state, record, thresholds)
    recommended, discouraged = _advise(state, record, thresholds, justified)
    return msgspec.structs.replace(
        record.view,
        justified=justified,
        why=why,
        recommended=possible(state, recommended),
        discouraged=sensible(state, discouraged),
    )


def _judge(
    state: ChatState, record: LatchRecord, thresholds: Thresholds
) -> tuple[bool | None, str]:
    view = record.view
    kind = view.kind
    if kind == "structural":
        return False, (
            "It was set by an attempt that made 0 summarizer calls: nothing could be folded at "
            "that moment, which says nothing about later ones."
        )
    if kind == "already_compacted":
        return False, "Nothing new since the last compaction is not a failure."
    if kind == "summarizer":
        return _judge_summarizer(state, view)
    if kind == "cooldown":
        return _judge_cooldown(state, record)
    if kind == "lock_held":
        return _judge_lock(record)
    if kind == "exhausted":
        return _judge_exhausted(state)
    if kind == "no_gain":
        return _judge_no_gain(state, view)
    if kind == "open_call":
        return False, "An old call without its result blocks every cut; the pair can be repaired."
    if kind == "inferred":
        return _judge_inferred(state)
    return None, "The agent does not say what it rests on."


def _judge_summarizer(state: ChatState, view: LatchView) -> tuple[bool | None, str]:
    healed = state.compactions.summarizer_fixed_seq
    if healed is not None and healed > view.set_seq:
        return False, "The summarizer has worked since."
    calls = "a summarizer call" if view.calls is None else plural(view.calls, "summarizer call")
    cause = state.compactions.summarizer_class
    return True, f"It was set after {calls} failed{f' ({cause})' if cause else ''}."


def _judge_no_gain(state: ChatState, view: LatchView) -> tuple[bool | None, str]:
    for attempt in state.compactions.recent:
        if attempt.attempt == view.attempt and attempt.relief is Relief.RELIEVED:
            return False, "The attempt that set it did help: the next request was counted smaller."
    return True, "The same input would give the same result until it changes and grows."


def _judge_cooldown(state: ChatState, record: LatchRecord) -> tuple[bool | None, str]:
    if record.until is None:
        return True, "A timer runs; the agent does not say until when."
    return True, f"A timer runs until {clock(record.until)}."


def _judge_lock(record: LatchRecord) -> tuple[bool | None, str]:
    holder = record.view.holder or "another process"
    if record.holder_alive is False:
        return False, f"{holder} holds it and is dead."
    if record.holder_alive:
        return True, f"{holder} holds it and is alive."
    return True, f"{holder} holds it; whether it lives is not known."


def _judge_exhausted(state: ChatState) -> tuple[bool | None, str]:
    pressed = is_pressed(state)
    if pressed is None:
        return None, "All attempts are used up; the load is not known."
    if pressed:
        return True, "All attempts are used up and the load is still above the trigger."
    return False, "All attempts are used up, but the load is fine now."


def _judge_inferred(state: ChatState) -> tuple[bool | None, str]:
    above = plural(state.requests.above, "request")
    if state.compactions.summarizer_row:
        return True, (
            f"Not reported by the agent: after failed summaries, {above} above the trigger "
            "went out without an attempt."
        )
    return None, (
        f"Not reported by the agent: {above} above the trigger went out without an attempt."
    )


def is_pressed(state: ChatState) -> bool | None:
    """True at or above the trigger in its own scope; None where that is not known."""
    limits = state.limits
    measure = trigger_measure(state)
    if measure is None or limits.trigger is None:
        return None
    return crosses(measure, limits.trigger, limits.trigger_inclusive)


def had_its_chance(state: ChatState) -> bool:
    """Many agents compact only between turns: until the next one began nothing is missing."""
    requests = state.requests
    return bool(requests.turn_passed or requests.prompt_folds or not state.turns.count)


def near_budget(state: ChatState, thresholds: Thresholds) -> bool | None:
    """True where less than a tenth of the window is left under the budget."""
    load, budget, window = load_now(state), state.limits.budget, state.limits.window
    if load is None or budget is None or not window:
        return None
    return budget - load <= thresholds.cooldown_headroom_share * window


def _advise(
    state: ChatState, record: LatchRecord, thresholds: Thresholds, justified: bool | None
) -> tuple[tuple[Advice, ...], tuple[Advice, ...]]:
    kind = record.view.kind
    clear = clear_latch_advice(state, record.view.latch)
    if kind == "open_call":
        text = "Close the open call with a result that says so."
        return (advise(state, "repair_pairs", text),), ()
    if kind == "cooldown" and not near_budget(state, thresholds):
        wait = manual("Wait for the timer; there is still room under the budget.")
        return (wait,), (against("clear_latch", "The timer ends by itself."),)
    if justified is False:
        return (clear,), ()
    fallback = advise(state, "compact_fallback", f"{FALLBACK}.")
    return (fallback,), (against("clear_latch", _why_not(state, kind)),)


def _why_not(state: ChatState, kind: str) -> str:
    if kind == "summarizer":
        failed = state.compactions.summarizer_row
        cause = state.compactions.summarizer_class
        if failed:
            times = "once" if failed == 1 else f"{failed:,} times"
            return f"Clearing it repeats a call that failed {times}{f': {cause}' if cause else ''}."
        return _REPEATS_FAILURE
    if kind == "lock_held":
        return "The holder may still be working: clearing it could run two compactions at once."
    if kind == "no_gain":
        return "The same input would free nothing again."
    if kind == "inferred":
        return "The agent reports no latch that could be cleared."
    return "What set it would set it again."
