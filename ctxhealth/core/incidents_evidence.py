"""The links of an incident's chain: what is true of the chat, taken from its folded state."""

from __future__ import annotations

from collections.abc import Iterator

from ctxhealth.core.attempts import calls_made
from ctxhealth.core.findings.definition import CRITICAL, INFO
from ctxhealth.core.folding.context import Context
from ctxhealth.core.incidents_causes import RANK
from ctxhealth.core.incidents_parts import CHAIN_LINKS, Burnt, ChainLink, OpenIncident
from ctxhealth.core.model import AttemptView, Outcome, Relief
from ctxhealth.core.parts import Fact
from ctxhealth.core.state import ChatState, Finding, LatchRecord
from ctxhealth.core.wording import clip

Chain = dict[str, ChainLink]
_KINDS = {"silent_empty": "reply", "stopped": "stop"}
# What grew has a finding of its own.
_OUTCOMES = frozenset({"no_progress", "nothing_foldable", "timed_out", "durability_failed"})
_NO_GAIN = frozenset({Outcome.NO_PROGRESS, Outcome.GREW, Outcome.TIMED_OUT})
_REASON = 160


def gather(state: ChatState, context: Context) -> tuple[Chain, Burnt]:
    """The links as they stand when an incident opens; what began earlier and is still true."""
    chain: Chain = {}
    burnt = Burnt()
    for view in _failed_row(state):
        _take_attempt(chain, view, context)
        burn(burnt, view)
    for record in state.latches.open.values():
        _open_latch(chain, record, context)
    for code, finding in state.findings.items():
        if code in RANK and finding.severity != INFO:
            _open_finding(chain, state, code, finding, context)
    return chain, burnt


def take_findings(state: ChatState, incident: OpenIncident, context: Context) -> bool:
    """Findings that opened, changed or closed with this event. True where any did."""
    chain, changed = incident.chain, False
    for code, finding in state.findings.items():
        if code not in RANK or finding.severity == INFO:
            continue
        link = chain.get(code)
        if link is None and len(chain) >= CHAIN_LINKS:
            incident.lost += 1
        elif link is None or link.until_seq is not None or link.facts != finding.facts:
            _open_finding(chain, state, code, finding, context)
            changed = True
        elif finding.severity == CRITICAL and link.critical_seq is None:
            link.critical_seq, link.severity, changed = context.seq, CRITICAL, True
    for link in chain.values():
        ended = link.until_seq is None and link.kind not in ("attempt", "latch")
        if ended and link.code not in state.findings:
            _end(link, context)
            changed = True
    return changed


def take_latches(state: ChatState, incident: OpenIncident, context: Context) -> bool:
    """Latches that were set or cleared with this event."""
    chain, open_ = incident.chain, state.latches.open
    seen = (state.latches.total, len(open_))
    if seen == incident.latches_seen:
        return False
    incident.latches_seen = seen
    for record in open_.values():
        link = chain.get(_latch_code(record))
        if link is None or link.until_seq is not None:
            _open_latch(chain, record, context)
    held = {_latch_code(record) for record in open_.values()}
    for link in chain.values():
        if link.kind == "latch" and link.until_seq is None and link.code not in held:
            _end(link, context)
    return True


def take_attempts(state: ChatState, incident: OpenIncident, context: Context) -> bool:
    """The attempt that this event ended, and the end of the row of failures."""
    compactions, changed = state.compactions, False
    last = compactions.recent[-1] if compactions.recent else None
    if last is not None and last.attempt != incident.last_attempt:
        incident.last_attempt, incident.failing, changed = last.attempt, True, True
        _take_attempt(incident.chain, last, context)
        burn(incident.burnt, last)
    if incident.failing and not compactions.summarizer_row and not compactions.no_relief:
        incident.failing, changed = False, True
        for link in incident.chain.values():
            if link.kind == "attempt" and link.until_seq is None:
                _end(link, context)
    return changed


def burn(burnt: Burnt, view: AttemptView) -> None:
    """Count what the attempt's summarizer read, where it failed or freed nothing."""
    failed = view.outcome is Outcome.SUMMARIZER_FAILED or view.error_class is not None
    freed_nothing = view.outcome in _NO_GAIN or (view.freed is not None and view.freed <= 0)
    if not failed and not freed_nothing:
        return
    calls, summarizer = calls_made(view), view.summarizer
    if calls == 0:
        burnt.known = True
    elif summarizer is not None and summarizer.input is not None:
        burnt.tokens, burnt.known = burnt.tokens + summarizer.input, True
    elif calls is not None or failed:
        burnt.calls += calls or 1


def attempt_code(view: AttemptView) -> str | None:
    """The link's code of an attempt that went wrong; None of one that did not."""
    if view.outcome is Outcome.SUMMARIZER_FAILED:
        error = view.error_class or "failed"
        # Content was replaced without any error: the finding says it better.
        if "emptied" in view.flags and error in ("failed", "other"):
            return None
        code = f"summarizer_{error}"
        return code if code in RANK else "summarizer_other"
    code = view.outcome.value
    return code if code in _OUTCOMES else None


def _failed_row(state: ChatState) -> Iterator[AttemptView]:
    """Attempts since the last one that helped, oldest first."""
    compactions = state.compactions
    if not compactions.summarizer_row and not compactions.no_relief:
        return
    row: list[AttemptView] = []
    for view in reversed(compactions.recent):
        if view.relief is Relief.RELIEVED:
            break
        row.append(view)
    yield from reversed(row)


def _take_attempt(chain: Chain, view: AttemptView, context: Context) -> None:
    code = attempt_code(view)
    if code is None:
        return
    seq = view.finished_seq if view.finished_seq is not None else context.seq
    at = view.finished_at if view.finished_at is not None else context.at
    link = chain.get(code)
    if link is None:
        link = chain[code] = ChainLink(code=code, kind="attempt", at=at, seq=seq, count=0)
    link.count += 1
    link.until_at = link.until_seq = None
    link.facts = _attempt_facts(view, link.facts)


def _attempt_facts(view: AttemptView, before: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """(model, provider, error, before, scope, freed by all of them)."""
    summarizer = view.summarizer
    freed = max(0, view.freed) if view.freed is not None else None
    if before:
        freed = None if freed is None or before[5] is None else freed + int(before[5])
    return (
        summarizer.model if summarizer else None,
        summarizer.provider if summarizer else None,
        view.error_class,
        view.before if not before or before[3] is None else before[3],
        view.scope if not before or before[3] is None else before[4],
        freed,
    )


def _latch_code(record: LatchRecord) -> str:
    return f"latch_{record.view.kind}"


def _open_latch(chain: Chain, record: LatchRecord, context: Context) -> None:
    code, view = _latch_code(record), record.view
    link = chain.get(code)
    if link is None:
        link = chain[code] = ChainLink(
            code=code, kind="latch", at=view.set_at, seq=view.set_seq, count=0
        )
    link.count += 1
    link.until_at = link.until_seq = None
    link.facts = (view.kind, view.justified, clip(view.reason, _REASON), view.latch)


def _open_finding(
    chain: Chain, state: ChatState, code: str, finding: Finding, context: Context
) -> None:
    link = chain.get(code)
    if link is None:
        kind = _KINDS.get(code, "finding")
        link = chain[code] = ChainLink(
            code=code, kind=kind, at=finding.since, seq=finding.since_seq, severity="warning"
        )
    elif link.until_seq is not None:
        link.count += 1
    link.until_at = link.until_seq = None
    link.facts = finding.facts
    if finding.severity == CRITICAL and link.critical_seq is None:
        link.severity, link.critical_seq = CRITICAL, context.seq
    if code == "silent_empty":
        link.count = max(link.count, state.replies.empty_row)


def _end(link: ChainLink, context: Context) -> None:
    link.until_at, link.until_seq = context.at, context.seq
