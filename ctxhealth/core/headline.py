"""One sentence that says what is wrong, with numbers, the cause and the action."""

from __future__ import annotations

from typing import NamedTuple

from ctxhealth.core.advice import manual
from ctxhealth.core.findings.catalogue import CATALOGUE
from ctxhealth.core.findings.definition import INFO
from ctxhealth.core.findings.judge import counted
from ctxhealth.core.findings.views import finding_view
from ctxhealth.core.meter import load_now, projection
from ctxhealth.core.model import Advice, State
from ctxhealth.core.state import ChatState
from ctxhealth.core.states import STATE_META
from ctxhealth.core.wording import clock, duration, number, percent

_UNFIT = ("reserve_exceeds_window", "floor_exceeds_budget")
_NO_ANSWER = (
    "broken_pairs", *_UNFIT, "latched_unjustified", "stalled", "emptied", "summarizer_failing",
    "silent_empty", "over_window", "over_budget", "agent_offline",
)  # fmt: skip
# What may explain the finding that names the state: the first of these that came before it.
_ROOTS: dict[str, tuple[str, ...]] = {
    "stopped": _NO_ANSWER,
    "turns_failing": _NO_ANSWER,
    "unanswered": _NO_ANSWER,
    "silent_empty": ("undercount",),
    "looping": (*_UNFIT, "over_window"),
    "over_window": ("grew", "jump", "undercount"),
    "over_budget": ("grew", "jump", "undercount"),
    "projected_over": ("grew", "jump"),
}


class Headline(NamedTuple):
    text: str
    advice: Advice | None


def headline(state: ChatState, now: int | None = None) -> Headline:
    """The headline; with ``now`` (server ms) it says how long the user has waited."""
    label = STATE_META[State(state.state)].label
    if state.state == "recovering":
        return Headline(f"{label}: {_recovering(state)}", None)
    codes = counted(state)
    if not codes:
        return Headline(f"{label}: {_calm(state)}", None)
    first = codes[0]
    if state.findings[first].severity == INFO:
        return Headline(f"{label}: {_lower(_sentence(state, first))}.", None)
    root = _root(state, codes, first)
    parts = _told(state, root, first)
    if state.turns.waiting_since is not None and first != "unanswered":
        parts.append(_waits(state, state.turns.waiting_since, now))
    advice = _advice(state, first, root)
    action = f" {advice.text}" if advice is not None else ""
    return Headline(f"{label}: {_lower('; '.join(parts))}.{action}", advice)


def _told(state: ChatState, root: str, first: str) -> list[str]:
    """The cause, then what it led to; each once."""
    if root == first:
        return [_sentence(state, first)]
    return [_sentence(state, root), _symptom(state, first)]


def _symptom(state: ChatState, code: str) -> str:
    """What the cause led to, without naming the cause once more."""
    facts = state.findings[code].facts
    if code == "turns_failing":
        facts = (facts[0], None, None)
    return CATALOGUE[code].sentence(facts).rstrip(".")


def _root(state: ChatState, codes: list[str], first: str) -> str:
    """The earliest finding that explains the one the state is named after."""
    since = state.findings[first].since_seq
    for code in _ROOTS.get(first, ()):
        found = state.findings.get(code)
        if found is None or code not in codes or found.severity == INFO:
            continue
        if found.since_seq <= since:
            return code
    return first


def _sentence(state: ChatState, code: str) -> str:
    return CATALOGUE[code].sentence(state.findings[code].facts).rstrip(".")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[:2].istitle() else text


def _waits(state: ChatState, since: int, now: int | None) -> str:
    if state.link.state == "imported":
        return f"a user message was unanswered at the end ({clock(since)})"
    if now is None:
        return f"the user has waited since {clock(since)}"
    return f"the user has waited {duration(now - since)}"


def _advice(state: ChatState, first: str, root: str) -> Advice | None:
    """The action of the cause; where that chat's agent cannot do it, one that it can."""
    offers = [
        advice
        for code in dict.fromkeys((root, first))
        for advice in finding_view(state, code).recommended
    ]
    can = [advice for advice in offers if advice.available]
    commands = [advice for advice in can if advice.action != "manual"]
    if not can and offers and state.link.state == "offline":
        return manual(f"Once the agent is back: {_lower(offers[0].text)}")
    return next(iter((*commands, *can, *offers)), None)


def _recovering(state: ChatState) -> str:
    recovery = state.recovery
    kind = recovery.kind.replace("_", " ") if recovery is not None else "a command"
    missing: list[str] = []
    if recovery is not None and not recovery.reading:
        missing.append("the next request's count")
    if recovery is not None and not recovery.answer:
        missing.append("the answer to the waiting user")
    waits = " and ".join(missing) or "the next turn"
    return f"{kind} succeeded; waiting for {waits}."


def _calm(state: ChatState) -> str:
    load, budget = load_now(state), state.limits.budget
    if load is None:
        ahead = projection(state)
        if ahead is not None:
            return f"about {number(ahead)} tokens, not yet counted."
        return "no request has been counted yet."
    if not budget:
        return f"{number(load)} tokens in the last prompt."
    share = percent(load / budget)
    return f"{number(load)} of {number(budget)} usable tokens, {share}."
