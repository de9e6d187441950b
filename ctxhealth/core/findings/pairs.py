"""Calls and results that belong together."""

from __future__ import annotations

from ctxhealth.core.advice import advise, against
from ctxhealth.core.findings.definition import (
    CRITICAL,
    INFO,
    Definition,
    Facts,
    Verdict,
    int_of,
    text_of,
)
from ctxhealth.core.model import Advice, State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import plural


def _broken(state: ChatState, t: Thresholds, at: int) -> Verdict:
    history = state.history
    calls, results = history.orphan_calls, history.orphan_results
    if history.orphan_named is None and not calls and not results:
        return (INFO, 0, 0, None, False, None) if history.orphan_start else None
    severe = history.orphan_named is not None or history.orphan_cut or not state.link.read_only
    ids = ", ".join((*calls, *results)[:3]) or None
    return (
        CRITICAL if severe else INFO,
        len(calls),
        len(results),
        ids,
        history.orphan_cut,
        history.orphan_named,
    )


def _say(facts: Facts) -> str:
    calls, results, ids, cut, named = facts
    if not calls and not results:
        if named is None:
            return "the record starts in the middle: a result came whose call is not in it."
        return f"the provider refuses the history: a call and its result do not match ({named})."
    parts: list[str] = []
    if calls:
        parts.append(f"{plural(int_of(calls), 'call')} without a result")
    if results:
        parts.append(f"{plural(int_of(results), 'result')} without a call")
    text = f"the history holds {' and '.join(parts)} ({text_of(ids)})"
    if cut:
        text += "; a compaction cut them apart"
    if named is not None:
        text += "; the provider refuses it"
    return text + "."


def _advise(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    if not any(facts):
        return ()
    return (advise(state, "repair_pairs", "Repair the pairs, then continue."),)


def _against(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    if not any(facts):
        return ()
    why = "It sends the same broken list again; size is not the reason."
    return (against("compact_summarize", why), against("continue", why))


def _lost_system(state: ChatState, t: Thresholds, at: int) -> Verdict:
    return (CRITICAL,) if state.history.lost_system else None


def _lost_tail(state: ChatState, t: Thresholds, at: int) -> Verdict:
    lost = state.history.lost_tail
    return (CRITICAL, lost) if lost is not None else None


def _stale_tail(state: ChatState, t: Thresholds, at: int) -> Verdict:
    history = state.history
    if history.stale_tail is None:
        return None
    return (CRITICAL, history.stale_tail, history.last_users[-1])


def _restore(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    restore = advise(state, "restore_backup", "Restore the history from before the compaction.")
    return (restore, advise(state, "continue", "Send the unanswered message again."))


DEFINITIONS = (
    Definition(
        code="broken_pairs",
        state=State.BROKEN,
        title="A call and its result were torn apart",
        severity="critical; info where the record only starts in the middle",
        check=_broken,
        sentence=_say,
        recommended=_advise,
        discouraged=_against,
        doc="A call without a result, or a result without its call, or a pair that a provider's "
        "refusal names. A call younger than its timeout is normal. Closes when the pair is "
        "whole or the provider accepts a request.",
        actions=("repair_pairs",),
    ),
    Definition(
        code="lost_system",
        state=State.BROKEN,
        title="The system prompt is gone",
        severity="critical",
        check=_lost_system,
        sentence=lambda facts: "the history had a system prompt and has none any more.",
        recommended=_restore,
        doc="A snapshot's order held a system item before, and the newest one does not.",
        actions=("restore_backup", "continue"),
    ),
    Definition(
        code="lost_tail",
        state=State.BROKEN,
        title="The last user message is gone",
        severity="critical",
        check=_lost_tail,
        sentence=lambda facts: (
            f"a compaction took the last user message ({text_of(facts[0])}) out of the context "
            "before it was answered."
        ),
        recommended=_restore,
        doc="The newest user message is missing from the compacted history. Closes with the next "
        "user message, or when a snapshot holds it again.",
        actions=("restore_backup", "continue"),
    ),
    Definition(
        code="stale_tail",
        state=State.BROKEN,
        title="An old user message stands last",
        severity="critical",
        check=_stale_tail,
        sentence=lambda facts: (
            f"the older user message {text_of(facts[0])} stands behind the newest one "
            f"({text_of(facts[1])}): the agent would act on the wrong request."
        ),
        recommended=_restore,
        doc="In the newest snapshot's order an older user message comes after the newest.",
        actions=("restore_backup", "continue"),
    ),
)
