"""The shape of a finding's definition, and the advice that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ctxhealth.core.advice import FALLBACK, advise, manual
from ctxhealth.core.model import Advice, State
from ctxhealth.core.parts import Fact
from ctxhealth.core.rules import Thresholds
from ctxhealth.core.state import ChatState

CRITICAL, WARNING, INFO = "critical", "warning", "info"

# (severity, fact, fact...) while the condition holds, None when it does not or is not known.
Verdict = tuple[Fact, ...] | None
Facts = tuple[Fact, ...]
Check = Callable[[ChatState, Thresholds, int], Verdict]
Say = Callable[[Facts], str]
Advise = Callable[[ChatState, Facts], tuple[Advice, ...]]


def no_advice(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One code. ``severity`` says in words when it is what; ``doc`` explains it to a person."""

    code: str
    state: State
    title: str
    severity: str
    check: Check
    sentence: Say
    doc: str
    recommended: Advise = no_advice
    discouraged: Advise = no_advice
    # The state while it is only a warning, where that is another one.
    mild_state: State | None = None
    actions: tuple[str, ...] = ()

    def state_for(self, severity: str) -> State:
        if severity == CRITICAL:
            return self.state
        if severity == INFO:
            return State.WATCH
        return self.mild_state or self.state


def fallback_advice(state: ChatState, why: str = "") -> Advice:
    """The deterministic compaction, and the answer for a user who waits."""
    text = FALLBACK
    if why:
        text += f" {why}"
    if state.turns.waiting_since is not None:
        text += ", then continue the unanswered turn"
    return advise(state, "compact_fallback", text + ".")


def continue_advice(state: ChatState) -> Advice:
    return advise(state, "continue", "Continue the unanswered turn.")


def only(text: str) -> Advise:
    """Advice that is one written step."""

    def give(state: ChatState, facts: Facts) -> tuple[Advice, ...]:
        return (manual(text),)

    return give


def text_of(fact: Fact) -> str:
    return "" if fact is None else str(fact)


def int_of(fact: Fact) -> int:
    return int(fact) if isinstance(fact, int | float) else 0
