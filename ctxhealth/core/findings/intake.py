"""What did not arrive whole."""

from __future__ import annotations

from ctxhealth.core.findings.definition import (
    INFO,
    Definition,
    Verdict,
    int_of,
    text_of,
)
from ctxhealth.core.model import State
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState
from ctxhealth.core.wording import clip, plural


def _gap(state: ChatState, t: Thresholds, at: int) -> Verdict:
    if not state.intake.gaps:
        return None
    return (INFO, state.intake.gaps, state.intake.gap_reason)


def _rejected(state: ChatState, t: Thresholds, at: int) -> Verdict:
    if not state.intake.rejects:
        return None
    return (INFO, state.intake.rejects, state.intake.reject_code)


def _unreadable(state: ChatState, t: Thresholds, at: int) -> Verdict:
    return (INFO, state.intake.unreadable) if state.intake.unreadable else None


def _conflict(state: ChatState, t: Thresholds, at: int) -> Verdict:
    return (INFO, state.intake.conflicts, state.intake.conflict) if state.intake.conflicts else None


DEFINITIONS = (
    Definition(
        code="gap",
        state=State.DEGRADED,
        title="Events were dropped",
        severity="info",
        check=_gap,
        sentence=lambda facts: (
            f"the agent dropped {plural(int_of(facts[0]), 'event')}: "
            f"{clip(text_of(facts[1]), 160)}."
        ),
        doc="The agent's outbox was full or lost; what is missing is said, not guessed.",
    ),
    Definition(
        code="rejected_events",
        state=State.DEGRADED,
        title="Events were refused",
        severity="info",
        check=_rejected,
        sentence=lambda facts: (
            f"{plural(int_of(facts[0]), 'event')} could not be understood, last: "
            f"{clip(text_of(facts[1]), 160)}."
        ),
        doc="Their tombstones stand in the log with the field and the reason.",
    ),
    Definition(
        code="conflict",
        state=State.DEGRADED,
        title="Events came again with other content",
        severity="info",
        check=_conflict,
        sentence=lambda facts: (
            f"{plural(int_of(facts[0]), 'event')} came again with other content, last: "
            f"{clip(text_of(facts[1]), 160)}."
        ),
        doc="The first one stays. The agent's outbox was put back, or two processes share one "
        "name and epoch.",
    ),
    Definition(
        code="unreadable",
        state=State.DEGRADED,
        title="Unreadable lines",
        severity="info",
        check=_unreadable,
        sentence=lambda facts: (
            f"{plural(int_of(facts[0]), 'line')} of the session file could not be read."
        ),
        doc="Torn or damaged lines of a transcript; the rest was read.",
    ),
)
