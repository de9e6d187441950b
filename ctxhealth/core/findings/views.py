"""An open or closing finding as it is shown."""

from __future__ import annotations

from ctxhealth.core.advice import possible, sensible
from ctxhealth.core.findings.catalogue import CATALOGUE
from ctxhealth.core.findings.judge import suppressor
from ctxhealth.core.model import FindingBrief, FindingView, Severity
from ctxhealth.core.state import ChatState, Finding
from ctxhealth.core.wording import sentence_case


def finding_view(
    state: ChatState,
    code: str,
    found: Finding | None = None,
    closed_at: int | None = None,
    closed_seq: int | None = None,
) -> FindingView:
    """The view of ``code``: the open finding, or ``found`` which has just been closed."""
    finding = state.findings[code] if found is None else found
    definition, facts = CATALOGUE[code], finding.facts
    closed = closed_at is not None
    return FindingView(
        code=code,
        severity=Severity(finding.severity),
        state=definition.state_for(finding.severity),
        title=definition.title,
        sentence=sentence_case(definition.sentence(facts)),
        since=finding.since,
        since_seq=finding.since_seq,
        count=finding.count,
        evidence=tuple(finding.evidence),
        closed_at=closed_at,
        closed_seq=closed_seq,
        suppressed_by=None if closed else suppressor(state, code),
        recommended=() if closed else possible(state, definition.recommended(state, facts)),
        discouraged=() if closed else sensible(state, definition.discouraged(state, facts)),
    )


def finding_brief(state: ChatState, code: str) -> FindingBrief:
    finding = state.findings[code]
    return FindingBrief(
        code=code,
        severity=Severity(finding.severity),
        sentence=sentence_case(CATALOGUE[code].sentence(finding.facts)),
        since=finding.since,
    )
