"""An incident as it is shown: its chain in sentences, its root, its figures."""

from __future__ import annotations

from ctxhealth.core.findings.catalogue import CATALOGUE
from ctxhealth.core.incidents_causes import RANK, belongs
from ctxhealth.core.incidents_model import IncidentCommand, IncidentLink, IncidentView
from ctxhealth.core.incidents_parts import ChainLink, GivenCommand, OpenIncident
from ctxhealth.core.incidents_words import say_link
from ctxhealth.core.model import Severity, State
from ctxhealth.core.state import FOLD_VERSION, ChatState
from ctxhealth.core.wording import sentence_case

# Findings whose sentence tells of such a root by itself.
_SAYS_ITS_ROOT = {"attempt": ("stalled",), "latch": ("latched_unjustified", "latched")}
_FINDINGS = frozenset({"finding", "reply", "stop"})


def incident_view(
    state: ChatState, incident: OpenIncident, closed: tuple[int, int, str] | None = None
) -> IncidentView:
    """``closed``: (seq, at, how) of an incident that ends with this event."""
    chain = _chain(incident)
    seq, at, how = closed if closed is not None else (None, None, None)
    burnt = incident.burnt
    unknown = burnt.calls > 0 and not burnt.known
    return IncidentView(
        opened_seq=incident.opened_seq,
        opened_at=incident.opened_at,
        started_seq=incident.started_seq,
        started_at=incident.started_at,
        detected_at=incident.opened_at,
        root=incident.root,
        cause=incident.cause,
        sentence=_sentence(incident),
        worst_state=State(incident.worst),
        worst_severity=Severity.CRITICAL,
        chain=chain,
        codes=tuple(link.code for link in chain if link.kind in _FINDINGS),
        acted_at=incident.acted_at,
        acted_by=incident.acted_by,
        recovered_at=incident.calm_since,
        answered_at=incident.answered_at,
        closed_seq=seq,
        closed_at=at,
        closed_how=how,
        commands=tuple(_command(given) for given in incident.commands),
        burnt_tokens=None if unknown else burnt.tokens,
        burnt_unknown_calls=burnt.calls,
        empties=state.replies.empty_total - incident.empties_before,
        unusable=incident.unusable,
        requests=state.requests.answered + state.requests.failed - incident.requests_before,
        turns=state.turns.count - incident.turns_before,
        lost_links=incident.lost,
        core_version=FOLD_VERSION,
    )


def _chain(incident: OpenIncident) -> tuple[IncidentLink, ...]:
    """What belongs to the story, in the order in which it came; causes first at one event."""
    links = incident.chain.values()
    criticals = frozenset(link.code for link in links if link.critical_seq is not None)
    found = [
        (link.seq, RANK.get(link.code, 0), _shown(link, incident.root))
        for link in links
        if belongs(link.code, incident.root, criticals)
    ]
    found += [(given.seq, len(RANK), _given(given)) for given in incident.commands]
    return tuple(entry[2] for entry in sorted(found, key=lambda entry: entry[:2]))


def _shown(link: ChainLink, root: str) -> IncidentLink:
    return IncidentLink(
        code=link.code,
        kind=link.kind,
        at=link.at,
        seq=link.seq,
        sentence=sentence_case(say_link(link)),
        severity=Severity(link.severity) if link.severity else None,
        until_at=link.until_at,
        until_seq=link.until_seq,
        count=link.count,
        root=link.code == root,
    )


def _given(given: GivenCommand) -> IncidentLink:
    by = f" by {given.by}" if given.by else ""
    return IncidentLink(
        code=given.kind,
        kind="command",
        at=given.at,
        seq=given.seq,
        sentence=sentence_case(f"{given.kind.replace('_', ' ')}{by}: {given.state}."),
        until_at=given.ended_at,
    )


def _command(given: GivenCommand) -> IncidentCommand:
    return IncidentCommand(
        command=given.command,
        kind=given.kind,
        state=given.state,
        at=given.at,
        seq=given.seq,
        by=given.by,
        ended_at=given.ended_at,
        before=given.before,
        after=given.after,
        reason=given.reason,
    )


def _sentence(incident: OpenIncident) -> str:
    """The root, then the worst that it led to; one sentence with the numbers of both."""
    root = incident.chain.get(incident.root)
    worst = _worst(incident)
    if root is not None and worst is not None and worst.code in _SAYS_ITS_ROOT.get(root.kind, ()):
        root = None
    told = [say_link(link).rstrip(".") for link in (root, worst) if link is not None]
    return sentence_case("; ".join(dict.fromkeys(told))) + "."


def _worst(incident: OpenIncident) -> ChainLink | None:
    """The critical finding that gave the incident its worst state."""
    links = [link for link in incident.chain.values() if link.critical_seq is not None]
    named = [link for link in links if CATALOGUE[link.code].state.value == incident.worst]
    return min(named or links, key=lambda link: link.seq, default=None)
