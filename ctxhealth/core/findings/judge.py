"""From open findings to one state: suppression, recovering, the first row that counts."""

from __future__ import annotations

from ctxhealth.core.findings.catalogue import CATALOGUE
from ctxhealth.core.findings.definition import CRITICAL, INFO, WARNING
from ctxhealth.core.model import State
from ctxhealth.core.state import ChatState

ROWS: dict[State, int] = {state: row for row, state in enumerate(State)}
_RANK = {CRITICAL: 0, WARNING: 1, INFO: 2}

# Symptom -> the causes that explain it; a cause counts where it is at least as severe.
_CAUSES: dict[str, tuple[str, ...]] = {
    "turns_failing": ("latched_unjustified",),
    "stalled": ("latched_unjustified",),
    "unanswered": ("stopped", "turns_failing"),
    "over_budget": ("reserve_exceeds_window", "floor_exceeds_budget", "over_window"),
    "projected_over": (
        "reserve_exceeds_window", "floor_exceeds_budget", "over_window", "over_budget",
    ),
    "over_trigger": ("stalled", "overdue", "over_budget", "over_window"),
    "overdue": ("stalled", "latched", "latched_unjustified"),
    "near_trigger": ("stalled", "over_trigger", "overdue", "over_budget", "over_window"),
    "undercount": (),
    "summarizer_failing": ("summarizer_too_small", "summary_reserve"),
}  # fmt: skip
# True of many chats most of the time: told after what is special to this one.
_BACKGROUND = frozenset({"window_unknown", "load_pending"})
# Findings of load rest on the meter; an overflow error rests on the provider's refusal.
_OF_LOAD = frozenset(
    {
        "over_budget", "projected_over", "over_trigger", "overdue", "near_trigger", "jump",
        "over_window", "provider_truncates", "undercount", "overcount",
    }
)  # fmt: skip


def suppressor(state: ChatState, code: str) -> str | None:
    """The open finding that explains ``code`` away, or None."""
    findings = state.findings
    for cause in _CAUSES.get(code, ()):
        found = findings.get(cause)
        if found is not None and _RANK[found.severity] <= _RANK[findings[code].severity]:
            if cause == "overdue" and suppressor(state, cause) is not None:
                continue
            return cause
    if code in _OF_LOAD and not state.requests.overflow:
        for meter in ("meter_unreliable", "cumulative_usage"):
            if meter in findings:
                return meter
    if code == "stalled" and _loops_first(state):
        return "looping"
    if code == "stalled" and "cumulative_usage" in findings and _rests_on_load(state):
        return "cumulative_usage"
    stalled = findings.get("stalled")
    if code == "looping" and stalled is not None and not _loops_first(state):
        return "stalled" if _RANK[stalled.severity] <= _RANK[findings[code].severity] else None
    return None


def _rests_on_load(state: ChatState) -> bool:
    """Whether relief is read off the provider's count, and no refusal says otherwise."""
    return state.limits.trigger_scope == "prompt" and not state.requests.overflow


def _loops_first(state: ChatState) -> bool:
    """Compactions that fire again and again within one turn: the loop is the news."""
    looping = state.findings.get("looping")
    return looping is not None and looping.facts[0] == "requests"


def muted(state: ChatState, code: str) -> bool:
    """True while a command's success has yet to show: only newer findings count."""
    recovery = state.recovery
    return recovery is not None and state.findings[code].since_seq <= recovery.seq


def counted(state: ChatState) -> list[str]:
    """Codes that make the state, worst first."""
    codes = [
        code
        for code in state.findings
        if not muted(state, code) and suppressor(state, code) is None
    ]
    return sorted(codes, key=lambda code: sort_key(state, code))


def sort_key(state: ChatState, code: str) -> tuple[int, int, bool, int]:
    finding = state.findings[code]
    row = ROWS[CATALOGUE[code].state_for(finding.severity)]
    return (_RANK[finding.severity], row, code in _BACKGROUND, finding.since_seq)


def settle_state(state: ChatState, at: int) -> None:
    """State and severity from what is open now; ``state_since`` moves when the word changes."""
    if state.findings or state.recovery is not None:
        name, severity = _judge(state)
    else:
        name, severity = "healthy", None
    state.severity = severity
    if name != state.state:
        state.state, state.state_since = name, at


def _judge(state: ChatState) -> tuple[str, str | None]:
    codes = counted(state)
    first = codes[0] if codes else None
    severity = state.findings[first].severity if first is not None else None
    if state.recovery is not None and severity != CRITICAL:
        return State.RECOVERING.value, severity or INFO
    if first is None or severity is None:
        return State.HEALTHY.value, None
    return CATALOGUE[first].state_for(severity).value, severity
