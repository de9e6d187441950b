"""Which findings an event may open, and how one opens, changes and closes."""

from __future__ import annotations

from ctxhealth.core.findings.catalogue import CATALOGUE
from ctxhealth.core.findings.definition import Definition, Verdict
from ctxhealth.core.findings.judge import settle_state
from ctxhealth.core.findings.views import finding_view
from ctxhealth.core.folding.context import Context
from ctxhealth.core.state import ChatState, Finding

EVIDENCE = 6

_LOAD = (
    "over_window", "over_budget", "projected_over", "over_trigger", "overdue", "near_trigger",
    "jump", "load_pending", "provider_truncates",
)  # fmt: skip
_METER = (
    "meter_unreliable", "undercount", "overcount", "window_conflict", "cumulative_usage",
    "window_unknown",
)  # fmt: skip
_COMPACTION = (
    "stalled", "emptied", "summarizer_failing", "grew", "looping", "ineffective", "lossy",
    "refused", "summarizer_too_small",
)  # fmt: skip
_LIMITS = (
    "floor_exceeds_budget", "reserve_exceeds_window", "summary_reserve", "summarizer_too_small",
    "trigger_unreachable", "bytes_limit",
)  # fmt: skip
_LATCHES = ("latched_unjustified", "latched")
_REPLIES = ("silent_empty", "nothing_visible", "repeating")
_TURNS = ("stopped", "turns_failing")
_TIME = ("hung", "unanswered", "agent_offline", "agent_late", "clock_skew")
_PAIRS = ("broken_pairs", "lost_system", "lost_tail", "stale_tail")
_INTAKE = ("gap", "rejected_events", "conflict", "unreadable")

_GROUPS: dict[str, tuple[str, ...]] = {
    "none": (),
    "facts": (*_LOAD, *_METER, *_LIMITS),
    "turn": (*_TURNS, *_LATCHES),
    "turn_end": (*_TURNS, *_LATCHES, "stalled", "nothing_visible"),
    "message": (
        "projected_over",
        "near_trigger",
        "huge_item",
        "broken_pairs",
        "repeating",
        "lost_tail",
        "stale_tail",
    ),
    "snapshot": (*_LOAD, *_LIMITS, *_PAIRS, "huge_item", "stalled"),
    "sent": ("bytes_limit", "broken_pairs", "retries_grow_prompt", *_LIMITS, *_LOAD),
    "reply": (*_REPLIES, *_LATCHES),
    "replied": (*_LOAD, *_METER, *_REPLIES, *_LATCHES, "stalled", "grew", "looping"),
    "failed": (
        *_LOAD,
        *_METER,
        *_LATCHES,
        *_PAIRS,
        *_LIMITS,
        "stalled",
        "refused",
        "retries_grow_prompt",
    ),
    "started": (*_LOAD, "meter_unreliable", "stalled"),
    "finished": (*_METER, *_COMPACTION, *_LOAD, *_LATCHES, *_PAIRS),
    "latch": (*_LATCHES, "overdue"),
    "link": _TIME,
    "intake": _INTAKE,
    "tick": (*_TIME, *_LATCHES),
}

_NARROW = frozenset({"message", "sent", "started", "none"})
# Anything that happens ends these.
_ANY_EVENT = ("unanswered", "hung")


def _resolve(names: tuple[str, ...]) -> tuple[Definition, ...]:
    return tuple(CATALOGUE[name] for name in dict.fromkeys(names) if name in CATALOGUE)


# Flat, because these loops are most of what an event costs.
_CHECKS = {
    group: tuple((entry.code, entry.check) for entry in _resolve(names))
    for group, names in _GROUPS.items()
}
_CODES = {group: frozenset(names) for group, names in _GROUPS.items()}


def evaluate(state: ChatState, group: str, context: Context) -> None:
    """Evaluate the findings that this group of facts touches.

    Open ones are looked at too, whatever the group, except after the frequent events that can
    change nothing but their own group.
    """
    findings, thresholds, at = state.findings, context.rules.thresholds, context.at
    changed = False
    for code, check in _CHECKS[group]:
        verdict = check(state, thresholds, at)
        if verdict is None:
            if code in findings:
                _close(state, code, context)
                changed = True
        elif _note(state, code, verdict, context):
            changed = True
    if findings:
        codes = _CODES[group]
        rest = _ANY_EVENT if group in _NARROW else findings
        for code in [code for code in rest if code in findings and code not in codes]:
            verdict = CATALOGUE[code].check(state, thresholds, at)
            if verdict is None:
                _close(state, code, context)
                changed = True
            elif _note(state, code, verdict, context):
                changed = True
    if changed or (state.recovery is not None) != (state.state == "recovering"):
        context.changes.facts = True
        settle_state(state, at)


def _note(state: ChatState, code: str, verdict: Verdict, context: Context) -> bool:
    """Open the finding, or take its new numbers. True when the chat's state may be another."""
    assert verdict is not None
    severity, facts = str(verdict[0]), verdict[1:]
    finding = state.findings.get(code)
    touched = context.changes.touched
    if finding is None:
        context.judged = True
        state.findings[code] = Finding(
            severity=severity,
            since=context.at,
            since_seq=context.seq,
            facts=facts,
            evidence=[context.seq],
        )
        touched[code] = True
        return True
    if finding.severity == severity and finding.facts == facts:
        return False
    context.judged = True
    # Numbers alone move no state; a loop's form decides what it explains away.
    moved = finding.severity != severity or code == "looping"
    finding.severity, finding.facts = severity, facts
    finding.count += 1
    if finding.evidence[-1] != context.seq:
        finding.evidence.append(context.seq)
        if len(finding.evidence) > EVIDENCE:
            del finding.evidence[1]
    touched.setdefault(code, False)
    context.changes.facts = True
    return moved


def _close(state: ChatState, code: str, context: Context) -> None:
    finding = state.findings.pop(code)
    context.judged = True
    context.changes.touched.pop(code, None)
    context.changes.findings_closed.append(
        finding_view(state, code, finding, context.at, context.seq)
    )
