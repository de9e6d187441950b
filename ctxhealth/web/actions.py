"""The buttons of a chat: which ones, which is first, and why another one is not to be pressed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ctxhealth.core.findings.stalls import UNREPORTED
from ctxhealth.core.model import Advice, ChatDetail, ChatSummary, Connection, LatchView


@dataclass(frozen=True, slots=True)
class Action:
    """A command kind as an operator knows it. ``danger`` asks for a second confirmation."""

    kind: str
    label: str
    icon: str
    does: str
    danger: bool = False
    key: str = ""


ACTIONS: dict[str, Action] = {
    action.kind: action
    for action in (
        Action(
            "compact_fallback",
            "Force fallback",
            "scissors",
            "Compacts now with fixed rules and no model call; a backup is written first.",
            key="f",
        ),
        Action(
            "clear_latch",
            "Clear latch",
            "lock-open",
            "Releases the latch that keeps compaction from running.",
            key="c",
        ),
        Action(
            "compact_summarize",
            "Compact with summarizer",
            "shrink",
            "Starts the agent's own compaction, which calls its summarizer.",
        ),
        Action(
            "continue",
            "Continue",
            "play",
            "Sends the last unanswered user message, or a continuation, again.",
        ),
        Action(
            "stop_turn",
            "Stop turn",
            "circle-stop",
            "Ends the running turn; the user's message stays unanswered.",
            danger=True,
        ),
        Action(
            "repair_pairs",
            "Repair pairs",
            "link-2",
            "Closes calls without a result and drops results without a call.",
        ),
        Action(
            "restore_backup",
            "Restore backup",
            "undo-2",
            "Puts back the history that was saved before a command.",
        ),
        Action(
            "rescue",
            "Rescue",
            "life-buoy",
            "Kills the turn and its background work, then falls back and continues.",
            danger=True,
        ),
        Action("snapshot", "Snapshot", "camera", "Asks for the structure of the history now."),
    )
}

ALWAYS = ("compact_fallback", "clear_latch")
WHEN_ABLE = ("compact_summarize", "continue", "stop_turn", "repair_pairs", "rescue", "snapshot")
OFFERED_ON_ADVICE = ("repair_pairs", "rescue", "stop_turn")
"""Shown only where a finding or a latch recommends them."""


FOLLOWED = (Connection.READ_ONLY, Connection.IMPORTED)
READ_ONLY = "Read-only chat: its agent has no command channel."


@dataclass(frozen=True, slots=True)
class Button:
    """One action on a chat's page. ``why`` says what speaks against it, or why it cannot be;
    ``busy`` that another command is under way, which the page says once for all buttons."""

    action: Action
    primary: bool = False
    available: bool = True
    why: str = ""
    query: str = ""
    busy: bool = False


def buttons_of(detail: ChatDetail, *, busy: str = "") -> tuple[Button, ...]:
    """The buttons in order, the recommended one first; ``busy`` says which command is open."""
    advised = _recommended(detail)
    first = next((advice.action for advice in advised if advice.action in ACTIONS), "")
    if detail.headline_advice is not None and detail.headline_advice.action in ACTIONS:
        first = detail.headline_advice.action
    kinds = [first] if first else []
    kinds += [kind for kind in ALWAYS if kind != first]
    kinds += [kind for kind in _further(detail, {advice.action for advice in advised}) if kind
              not in kinds]  # fmt: skip
    against = _discouraged(detail)
    return tuple(_button(kind, detail, kind == first, busy, against) for kind in kinds)


def _further(detail: ChatDetail, advised: set[str]) -> list[str]:
    can = detail.summary.command_kinds
    return [
        kind
        for kind in WHEN_ABLE
        if kind in can and (kind not in OFFERED_ON_ADVICE or kind in advised)
    ]


def _button(
    kind: str, detail: ChatDetail, first: bool, busy: str, against: dict[str, str]
) -> Button:
    action = ACTIONS[kind]
    obstacle = obstacle_to(kind, detail, busy=busy)
    return Button(
        action,
        primary=first and not obstacle,
        available=not obstacle,
        why=obstacle or ("" if first else _doubt(kind, detail.latches) or against.get(kind, "")),
        query=_latch_query(kind, detail.latches),
        busy=bool(obstacle) and obstacle == busy,
    )


def obstacle_to(kind: str, detail: ChatDetail, *, busy: str = "") -> str:
    """Why this cannot be pressed now, said before the press; empty where it can."""
    summary = detail.summary
    if summary.connection in FOLLOWED:
        return READ_ONLY
    if summary.connection is Connection.POSTS:
        return "This agent reports by HTTP: it has no command channel."
    if summary.connection is Connection.CLOSED:
        return "This chat is closed: nothing can reach it."
    if not reachable(summary):
        return "The agent is not connected: nothing can reach it until it is back."
    if kind not in summary.command_kinds:
        return "This agent does not offer it."
    if kind == "clear_latch" and not open_latches(detail.latches):
        return "The agent reports no latch: there is nothing to clear."
    return busy


def reachable(summary: ChatSummary) -> bool:
    """Whether a command of any kind could reach the chat's agent now."""
    return summary.connection is Connection.LIVE


def open_latches(latches: Iterable[LatchView]) -> list[LatchView]:
    return [latch for latch in latches if latch.cleared_at is None]


def _doubt(kind: str, latches: Iterable[LatchView]) -> str:
    """An inferred latch has no handle: the press is possible, and the agent will say so."""
    standing = open_latches(latches)
    if kind == "clear_latch" and standing and all(latch.inferred for latch in standing):
        return UNREPORTED
    return ""


def _latch_query(kind: str, latches: Sequence[LatchView]) -> str:
    """The latch a bare *Clear latch* means: an unjustified one before any other."""
    from urllib.parse import urlencode

    standing = sorted(
        open_latches(latches), key=lambda latch: (latch.inferred, latch.justified is not False)
    )
    if kind != "clear_latch" or not standing:
        return ""
    return "?" + urlencode({"latch": standing[0].latch})


def _recommended(detail: ChatDetail) -> list[Advice]:
    findings = [a for finding in detail.findings for a in finding.recommended]
    latches = [a for latch in open_latches(detail.latches) for a in latch.recommended]
    return findings + latches


def _discouraged(detail: ChatDetail) -> dict[str, str]:
    reasons: dict[str, str] = {}
    found = [advice for finding in detail.findings for advice in finding.discouraged]
    found += [a for latch in open_latches(detail.latches) for a in latch.discouraged]
    for advice in found:
        reasons.setdefault(advice.action, advice.text)
    return reasons
