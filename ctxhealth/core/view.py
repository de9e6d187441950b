"""The state as it is shown: one row of the board, one page. Pure and on demand."""

from __future__ import annotations

from ctxhealth.core.findings.fitting import floor_of
from ctxhealth.core.findings.judge import counted, sort_key
from ctxhealth.core.findings.views import finding_brief, finding_view
from ctxhealth.core.headline import Headline, headline
from ctxhealth.core.latching import describe_latch
from ctxhealth.core.limits import trigger_on_strip
from ctxhealth.core.meter import forecast, load_now, projection, trigger_measure
from ctxhealth.core.model import (
    AttemptBrief,
    ChatDetail,
    ChatSummary,
    Connection,
    FindingBrief,
    Headroom,
    HeavyItem,
    HistoryLoad,
    LatchBrief,
    Reading,
    Severity,
    Source,
    State,
    Structure,
    TriggerSource,
    TriggerView,
    Window,
    WindowSource,
)
from ctxhealth.core.rules import Rules
from ctxhealth.core.segments import segments
from ctxhealth.core.state import ChatState
from ctxhealth.core.structure import structure_from_items

BRIEF_FINDINGS = 8


def summary(state: ChatState, rules: Rules, now: int | None = None) -> ChatSummary:
    """The chat as a row. ``now`` (server ms) lets the headline say ages instead of times."""
    return _summary(state, rules, headline(state, now))


def detail(
    state: ChatState, rules: Rules, structure: Structure | None, now: int | None = None
) -> ChatDetail:
    """The chat as its page; ``structure`` from the newest snapshot, else from the items."""
    said = headline(state, now)
    codes = sorted(state.findings, key=lambda code: sort_key(state, code))
    running = next(reversed(state.compactions.running.values()), None)
    return ChatDetail(
        summary=_summary(state, rules, said),
        chat_seq=state.seq,
        headline=said.text,
        headline_advice=said.advice,
        findings=tuple(finding_view(state, code) for code in codes),
        latches=tuple(
            describe_latch(state, record, rules.thresholds)
            for record in state.latches.open.values()
        ),
        heavy=_heavy(state),
        structure=structure or structure_from_items(state),
        running_attempt=running,
        turn=state.turns.turn,
        turn_kind=state.turns.kind,
    )


def _summary(state: ChatState, rules: Rules, said: Headline) -> ChatSummary:
    facts, limits, requests = state.facts, state.limits, state.requests
    compactions, replies, turns = state.compactions, state.replies, state.turns
    history, intake, incident = state.history, state.intake, state.incident
    return ChatSummary(
        title=(facts.title or "").strip() or None,
        model=facts.model,
        provider=facts.provider,
        runtime=facts.runtime,
        state=State(state.state),
        severity=Severity(state.severity) if state.severity else None,
        since=state.state_since,
        headline=said.text,
        advice=said.advice.text if said.advice is not None else "",
        waiting_since=turns.waiting_since,
        connection=connection_of(state),
        load=reading_of(state),
        projection=projection(state),
        window=_window(state),
        reserve=limits.reserve,
        reserve_assumed=limits.reserve_assumed,
        budget=limits.budget,
        trigger=_trigger(state),
        headroom=_headroom(state),
        forecast=forecast(state, rules.thresholds.forecast_requests),
        history=_history(state),
        calibration=state.meter.calibration,
        segments=segments(state),
        floor=floor_of(state),
        requests=requests.answered + requests.failed + requests.synthetic,
        turns=turns.count,
        compactions=compactions.finished,
        outcomes=dict(compactions.outcomes),
        last_compaction=_last_compaction(state),
        latches=_latches(state),
        empty_replies=replies.empty_row,
        unusable_replies=replies.unusable_row,
        last_reply_at=replies.last_at,
        findings=_briefs(state),
        trend=tuple(state.meter.trend),
        parent=facts.parent,
        images=history.images,
        request_bytes=history.request_bytes,
        bytes_limit=facts.bytes_limit,
        unreadable_lines=intake.unreadable,
        gaps=intake.gaps,
        rejects=intake.rejects,
        opened_at=state.opened_at,
        last_event_at=state.last_event_at,
        turn_open=turns.open,
        command_kinds=tuple(state.link.commands),
        incident=None if incident is None else incident.opened_seq,
        cause=None if incident is None else incident.cause.key,
    )


def _window(state: ChatState) -> Window:
    limits = state.limits
    return Window(
        value=limits.window,
        source=WindowSource(limits.window_source),
        at_least=limits.at_least,
        max_input=limits.max_input,
        candidates=tuple(limits.candidates),
    )


def _history(state: ChatState) -> HistoryLoad:
    history = state.history
    return HistoryLoad(
        value=history.value,
        limit=_history_limit(state),
        source=Source(history.source) if history.value is not None else Source.UNKNOWN,
    )


def _latches(state: ChatState) -> tuple[LatchBrief, ...]:
    views = [record.view for record in state.latches.open.values()]
    return tuple(
        LatchBrief(latch=view.latch, kind=view.kind, justified=view.justified) for view in views
    )


def reading_of(state: ChatState) -> Reading:
    """The newest reading, or the estimate that stands in for it after a compaction."""
    meter = state.meter
    if meter.pending:
        return Reading(
            value=meter.estimate,
            source=Source.PENDING,
            at=meter.at,
            chat_seq=meter.seq,
            reliable=meter.doubt is None,
            reason=meter.doubt or "compacted since; no request has been counted yet",
        )
    return Reading(
        value=meter.value,
        source=Source(meter.source),
        at=meter.at,
        request=meter.request,
        chat_seq=meter.seq,
        reliable=meter.doubt is None,
        reason=meter.doubt,
    )


def connection_of(state: ChatState) -> Connection:
    link = state.link
    if link.closed:
        return Connection.CLOSED
    return Connection(link.state)


def _trigger(state: ChatState) -> TriggerView:
    limits = state.limits
    return TriggerView(
        value=limits.trigger,
        inclusive=limits.trigger_inclusive,
        scope=limits.trigger_scope,
        source=TriggerSource(limits.trigger_source),
        on_strip=trigger_on_strip(state),
    )


def _headroom(state: ChatState) -> Headroom:
    limits, load, measure = state.limits, load_now(state), trigger_measure(state)
    return Headroom(
        trigger=_left(limits.trigger, measure),
        budget=_left(limits.budget, load),
        window=_left(limits.window, load),
    )


def _left(line: int | None, value: int | None) -> int | None:
    return None if line is None or value is None else line - value


def _history_limit(state: ChatState) -> int | None:
    if state.facts.history_limit is not None:
        return state.facts.history_limit
    limits = state.limits
    return limits.trigger if limits.trigger_scope == "history" else None


def _last_compaction(state: ChatState) -> AttemptBrief | None:
    if not state.compactions.recent:
        return None
    view = state.compactions.recent[-1]
    return AttemptBrief(
        outcome=view.outcome,
        before=view.before,
        after=view.after,
        at=view.finished_at or 0,
        lossy=view.lossy,
        relief=view.relief,
        inferred="inferred" in view.flags,
    )


def _briefs(state: ChatState) -> tuple[FindingBrief, ...]:
    """The findings that count, worst first; muted ones are told on the chat's page."""
    return tuple(finding_brief(state, code) for code in counted(state)[:BRIEF_FINDINGS])


def _heavy(state: ChatState) -> tuple[HeavyItem, ...]:
    ordered = sorted(state.history.heavy, key=lambda heavy: (-heavy.tokens, heavy.seq))
    return tuple(
        HeavyItem(
            id=heavy.id,
            kind=heavy.kind,
            role=heavy.role,
            tokens=heavy.tokens,
            name=heavy.name,
            excerpt=heavy.excerpt,
            in_context=heavy.in_context,
            chat_seq=heavy.seq,
            estimate=heavy.estimate,
        )
        for heavy in ordered
    )
