"""What to do: a command that the chat's agent can do, else another one, else a step by hand."""

from __future__ import annotations

from collections.abc import Iterable

from ctxhealth.core.model import Advice
from ctxhealth.core.state import ChatState

FALLBACK = "Force a fallback compaction, which calls no model"
_SHRINK = ("compact_fallback", "compact_summarize")
_BY_HAND = {
    "compact_fallback": "Compact or shorten the history in the agent itself, or start a new chat "
    "from a summary of this one",
    "clear_latch": "Clear the latch in the agent itself, then let it compact",
    "continue": "Send the unanswered message again in the agent itself",
    "stop_turn": "Stop the running turn in the agent itself",
    "rescue": "If it does not stop: restart the agent",
    "repair_pairs": "Take the torn call or result out of the agent's history, or start a new chat",
    "restore_backup": "Restore the history from a backup of the agent's own, or start a new chat",
    "no_summary": "Start a new chat from what is needed of this one, or shorten its history "
    "without a summary: the agent's own compaction calls the summarizer that fails",
}
# By runtime, as the agent names it.
_RUNTIMES = {
    "claude-code": {
        "compact_fallback": "Run /compact in the session, or start a new one from its summary",
        "continue": "Send the unanswered message again in the session",
        "stop_turn": "Press Esc in the session to stop the turn",
        "rescue": "If it does not stop: end the process and resume the session",
        "repair_pairs": "Rewind the session to before the torn call, or start a new one",
        "restore_backup": "Rewind the session to before the compaction, or start a new one",
        "no_summary": "Start a new session from what is needed of this one, or run /compact once "
        "the summarizer works again",
    },
    "maka": {
        "compact_fallback": "Run /compact in the session while no turn runs, or start a new one "
        "from what is needed of this one",
        "clear_latch": "Stop the turn where it still runs, as its latch ends with it; then let "
        "Maka compact",
        "continue": "Send the unanswered message again in the session",
        "no_summary": "Start a new session from what is needed of this one: Maka's compaction "
        "always calls the summarizer, which fails",
    },
}


def advise(state: ChatState, action: str, text: str, args: dict[str, str] | None = None) -> Advice:
    """Advice that names a command, with the reason where this chat's agent cannot do it."""
    why = unavailable(state, action)
    return Advice(action=action, text=text, available=why is None, why=why, args=args or {})


def manual(text: str) -> Advice:
    """A written step."""
    return Advice(action="manual", text=text)


def against(action: str, why: str) -> Advice:
    """Discouraged, with its reason."""
    return Advice(action=action, text=why, why=why)


def unavailable(state: ChatState, action: str) -> str | None:
    """Why this chat's agent cannot be told to do ``action``; None when it can."""
    link = state.link
    if link.read_only or link.state == "imported":
        return "read-only: there is no command channel to this chat's agent"
    if link.state == "posts":
        return "reports by HTTP: there is no command channel to this chat's agent"
    if not link.connected:
        return "the agent is offline"
    if action not in link.commands:
        return "this agent does not offer it"
    return None


def clear_latch_advice(state: ChatState, latch: str) -> Advice:
    return advise(
        state,
        "clear_latch",
        "Clear the latch, then compact.",
        {"latch": latch, "then": "compact"},
    )


def possible(state: ChatState, offers: Iterable[Advice]) -> tuple[Advice, ...]:
    """``offers`` as this chat can take them up: each that has no button becomes what stands in.

    A command of an agent that is only offline stays: it can be given when the agent is back.
    """
    found: dict[str, Advice] = {}
    for offer in offers:
        advice = offer if not _lacks(state, offer.action) else _instead(state, offer.action)
        if advice.action == "manual" and offer.action == "continue" and _shrinks(found):
            # Its step by hand already ends with the message.
            continue
        found.setdefault(advice.text if advice.action == "manual" else advice.action, advice)
    return tuple(found.values())


def sensible(state: ChatState, offers: Iterable[Advice]) -> tuple[Advice, ...]:
    """Warnings of what somebody could press here; of other buttons nobody need be warned."""
    return tuple(advice for advice in offers if not _lacks(state, advice.action))


def by_hand(state: ChatState, action: str) -> Advice:
    """What the operator can do in the agent itself in place of a command."""
    steps = {**_BY_HAND, **_RUNTIMES.get((state.facts.runtime or "").lower(), {})}
    if action not in _SHRINK:
        return manual(f"{steps[action]}.")
    text = steps["no_summary" if state.compactions.summarizer_row else "compact_fallback"]
    if state.turns.waiting_since is not None:
        text += "; then send the unanswered message again"
    return manual(f"{text}.")


def _lacks(state: ChatState, action: str) -> bool:
    link = state.link
    if action == "manual":
        return False
    return link.read_only or link.state == "imported" or action not in link.commands


def _instead(state: ChatState, action: str) -> Advice:
    """Another command to the same end where the agent offers one, else the step by hand."""
    if action == "compact_fallback" and not _lacks(state, "clear_latch"):
        for record in state.latches.open.values():
            if record.view.justified is False:
                return clear_latch_advice(state, record.view.latch)
    if action in ("clear_latch", "compact_summarize") and not _lacks(state, "compact_fallback"):
        return advise(state, "compact_fallback", f"{FALLBACK}.")
    held = state.latches.open or state.compactions.summarizer_row
    if action == "compact_fallback" and not held and not _lacks(state, "compact_summarize"):
        return advise(state, "compact_summarize", "Let the agent compact now.")
    return by_hand(state, action)


def _shrinks(found: dict[str, Advice]) -> bool:
    return any(text.endswith("; then send the unanswered message again.") for text in found)
