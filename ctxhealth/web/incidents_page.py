"""What an incident page says beside the axis: figures, chain, deeds, then and now; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ctxhealth.core.incidents_model import IncidentLink, IncidentView
from ctxhealth.core.incidents_words import say_cause, say_root
from ctxhealth.core.model import Severity, State
from ctxhealth.store.queries import AuditRow, CommandRow
from ctxhealth.store.queries.incidents import IncidentDetail, IncidentRow
from ctxhealth.web import states
from ctxhealth.web.actions import ACTIONS
from ctxhealth.web.audit_words import AuditLine, line_of
from ctxhealth.web.format import duration, number, plural, words
from ctxhealth.web.receipts import Receipt, receipt_of

_KINDS = {
    "finding": "triangle-alert",
    "attempt": "fold-vertical",
    "latch": "lock",
    "reply": "message-square-x",
    "stop": "octagon-x",
    "command": "wrench",
}
VERDICTS = (("root_cause", "Root cause known"), ("false_alarm", "False alarm"))
# What is said of it; notes stand on the page themselves.
_OWN_ACTIONS = ("incident.owner", "incident.verdict", "cause_group.owner", "command.cancel")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the incident. ``at`` is its moment where it has one; ``note`` in small."""

    label: str
    value: str
    note: str = ""
    at: int | None = None
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One link of the cause chain, ready to be shown."""

    link: IncidentLink
    title: str
    icon: str
    tone: str
    lasted: str


@dataclass(frozen=True, slots=True)
class Act:
    """Something that a person did: a command with its receipt, or a line of the trail."""

    at: int
    receipt: Receipt | None = None
    line: AuditLine | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """One thing as it was judged then, and as the present core judges it."""

    name: str
    then: str
    now: str

    @property
    def same(self) -> bool:
        return self.then == self.now


@dataclass(frozen=True, slots=True)
class IncidentPage:
    """The template's view of one incident or kept review."""

    detail: IncidentDetail
    review: bool
    open: bool
    left_open: bool
    sentence: str
    state: states.Meta | None
    tone: str
    cause: str
    verdict: str
    figures: tuple[Figure, ...]
    chain: tuple[Link, ...]
    acts: tuple[Act, ...]
    judgements: tuple[Judgement, ...]
    judged_by: int | None
    now_by: int | None
    lost_links: int

    @property
    def changed(self) -> bool:
        return any(not judgement.same for judgement in self.judgements)


def page_of(
    detail: IncidentDetail,
    commands: Sequence[CommandRow],
    trail: Sequence[AuditRow],
    now: int,
    exported_at: int | None = None,
) -> IncidentPage:
    """``exported_at``: it was still open when its bundle was made, whatever closed it here."""
    row, view, judged = detail.row, detail.view, detail.judged
    shown = view or judged
    review = row.kind == "review"
    state = None if review or not row.state else states.state(State(row.state))
    return IncidentPage(
        detail=detail,
        review=review,
        open=row.closed_at is None,
        left_open=exported_at is not None,
        sentence=row.sentence or ("A stretch that somebody set aside." if review else ""),
        state=state,
        tone=state.tone if state else "info",
        cause=say_cause(row.cause) if row.cause else (say_root(row.root) if row.root else ""),
        verdict=dict(VERDICTS).get(detail.verdict, ""),
        figures=tuple(figures_of(detail, shown, now, exported_at)),
        chain=tuple(_link(link) for link in (shown.chain if shown else ())),
        acts=tuple(_acts(commands, trail)),
        judgements=tuple(_judgements(judged, view)) if judged is not None else (),
        judged_by=judged.core_version if judged else None,
        now_by=view.core_version if view else None,
        lost_links=shown.lost_links if shown else 0,
    )


def figures_of(
    detail: IncidentDetail, view: IncidentView | None, now: int, exported_at: int | None = None
) -> Iterable[Figure]:
    """Times from the first evidence on, then what it cost; what is not known says so."""
    row = detail.row
    said = "first evidence of the root" if row.kind == "automatic" else ""
    yield Figure("Started", "", said, row.started_at)
    if view is not None:
        yield from _answers(view, row.closed_at is None)
    yield _lasted(row, view, now, exported_at)
    if view is not None:
        yield _burnt(view)
        told = [plural(view.requests, "request"), plural(view.turns, "turn")]
        if view.empties:
            told.append(plural(view.empties, "empty reply", "empty replies"))
        yield Figure("In it", told[0], ", ".join(told[1:]))


_CLOSED = {"requests": "calm for 3 requests", "time": "calm for 10 minutes",
           "ended": "the chat ended"}  # fmt: skip


def _lasted(
    row: IncidentRow, view: IncidentView | None, now: int, exported_at: int | None
) -> Figure:
    ended, note = row.closed_at, _CLOSED.get(view.closed_how or "", "") if view else ""
    if exported_at is not None:
        ended, note = exported_at, "still open when its bundle was made"
    elif ended is None:
        note = "and goes on"
    took = duration(max(0, (now if ended is None else ended) - row.started_at))
    return Figure("Lasted", took, note, ended)


def _answers(view: IncidentView, still: bool) -> Iterable[Figure]:
    yield Figure("To detect", duration(view.detected_at - view.started_at), "", view.detected_at)
    if view.acted_at is not None:
        took = duration(max(0, view.acted_at - view.detected_at))
        yield Figure("To act", took, f"by {view.acted_by}" if view.acted_by else "", view.acted_at)
    else:
        yield Figure("To act", "not yet" if still else "nobody", "nothing was pressed")
    if view.recovered_at is not None:
        took = duration(max(0, view.recovered_at - view.detected_at))
        yield Figure("To recover", took, _answered(view), view.recovered_at)
    else:
        yield Figure("To recover", "not yet" if still else "never", "",
                     tone="critical" if still else "")  # fmt: skip


def _answered(view: IncidentView) -> str:
    if view.answered_at is None:
        return "no turn was answered since"
    return f"answered {duration(max(0, view.answered_at - view.detected_at))} after"


def _burnt(view: IncidentView) -> Figure:
    unknown = view.burnt_unknown_calls
    note = "by summaries without a result"
    if view.burnt_tokens is None:
        calls = plural(unknown, "call") if unknown else ""
        return Figure("Tokens burnt", "?" if unknown else "0", f"{calls} without usage".strip()
                      if unknown else note)  # fmt: skip
    more = f"; {plural(unknown, 'call')} without usage add to it" if unknown else ""
    return Figure("Tokens burnt", number(view.burnt_tokens), note + more)


def _link(link: IncidentLink) -> Link:
    tone = states.severity(link.severity).tone if link.severity else "neutral"
    lasted = duration(link.until_at - link.at) if link.until_at is not None else ""
    action = ACTIONS.get(link.code) if link.kind == "command" else None
    title = action.label if action else say_root(link.code)
    icon = action.icon if action else _KINDS.get(link.kind, "circle-dot")
    return Link(link, title, icon, tone, lasted)


def _acts(commands: Sequence[CommandRow], trail: Sequence[AuditRow]) -> list[Act]:
    """In the order of time. A press stands once: as its command, or as the refusal it met."""
    acts = [Act(command.created_at, receipt=receipt_of(command)) for command in commands]
    for row in trail:
        refused = row.command is None and row.action.startswith("command.")
        if refused or row.action in _OWN_ACTIONS:
            acts.append(Act(row.at, line=line_of(row)))
    return sorted(acts, key=lambda act: act.at)


def _judgements(then: IncidentView, now: IncidentView | None) -> Iterable[Judgement]:
    none = "no incident"
    yield Judgement("Sentence", then.sentence, now.sentence if now else none)
    yield Judgement("Root", say_root(then.root), say_root(now.root) if now else none)
    worst = _worst(then.worst_state, then.worst_severity)
    yield Judgement("Worst", worst, _worst(now.worst_state, now.worst_severity) if now else none)
    yield Judgement("Findings", _codes(then), _codes(now) if now else none)


def _worst(state: State, severity: Severity) -> str:
    return f"{states.state(state).label}, {states.severity(severity).label.lower()}"


def _codes(view: IncidentView) -> str:
    return ", ".join(words(code) for code in view.codes) or "none"
