"""The root of an incident, and the cause that it shares with others."""

from __future__ import annotations

from ctxhealth.core.folding.context import Context
from ctxhealth.core.incidents_causes import EFFECTS, RANK, Evidence, root_of
from ctxhealth.core.incidents_model import Cause
from ctxhealth.core.incidents_parts import ChainLink, OpenIncident
from ctxhealth.core.state import ChatState

_SUMMARIZER = "summarizer_"
_OF_SUMMARIZER = frozenset({"summarizer_failing", "emptied"})
_OF_SIZE = frozenset({"summarizer_too_small"})
# What the chat's own model or its provider does.
_OF_MODEL = frozenset({"turns_failing", "stopped"})


def settle_root(
    state: ChatState, chain: dict[str, ChainLink], context: Context
) -> tuple[str, Cause, ChainLink]:
    """The root's code, its cause, and the link that is its first evidence."""
    links = [Evidence(link.code, link.seq, link.critical_seq) for link in chain.values()]
    code = root_of(links, context.seq)
    if code is None:
        first = ChainLink(code=state.state, kind="finding", at=context.at, seq=context.seq)
        return first.code, Cause(finding=first.code), first
    return code, cause_of(state, code, chain[code]), chain[code]


def revise_root(state: ChatState, incident: OpenIncident, context: Context) -> None:
    """A later critical finding may show what the opening one came from.

    An overflow opens the incident, the summarizer then fails: the summarizer is the root, because
    it stands further up and leads to overflows.
    """
    links = incident.chain.values()
    if not any(link.critical_seq == context.seq for link in links):
        return
    evidence = [Evidence(link.code, link.seq, link.critical_seq) for link in links]
    code = root_of(evidence, context.seq)
    if code is None or RANK[code] >= RANK.get(incident.root, len(RANK)):
        return
    if RANK[code] < RANK["stalled"] and incident.root in EFFECTS[code]:
        link = incident.chain[code]
        incident.root, incident.cause = code, cause_of(state, code, link)
        if link.seq < incident.started_seq:
            incident.started_seq, incident.started_at = link.seq, link.at


def cause_of(state: ChatState, root: str, link: ChainLink) -> Cause:
    """What other chats in the same trouble have in common with this one."""
    if link.kind == "attempt" and root.startswith(_SUMMARIZER):
        model, provider, error = link.facts[:3]
        return _summarizer(state, _text(model), _text(provider), _text(error))
    if root in _OF_SUMMARIZER:
        compactions = state.compactions
        return _summarizer(state, compactions.summarizer_model, None, compactions.summarizer_class)
    if root in _OF_SIZE:
        return Cause(finding=root, summarizer_model=state.facts.utility_model)
    if root == "silent_empty":
        error = _text(link.facts[1])
        provider = state.facts.provider if error == "provider_empty" else None
        return Cause(finding=root, provider=provider, error_class=error)
    if root in _OF_MODEL:
        error = state.requests.last_error
        return Cause(
            finding=root, provider=state.facts.provider if error else None, error_class=error
        )
    return Cause(finding=root)


def _summarizer(
    state: ChatState, model: str | None, provider: str | None, error: str | None
) -> Cause:
    facts = state.facts
    return Cause(
        finding="summarizer_failing",
        summarizer_model=model or facts.utility_model,
        provider=provider or facts.utility_provider,
        error_class=error,
    )


def _text(fact: object) -> str | None:
    return None if fact is None else str(fact)
