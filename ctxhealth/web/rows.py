"""A chat as one line of the board: what stands in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ctxhealth.core.model import AttemptBrief, ChatSummary, Severity
from ctxhealth.core.presence import waits
from ctxhealth.web import states
from ctxhealth.web.format import number, percent, plural, short
from ctxhealth.web.strip import Strip, strip_of

TONES = {Severity.CRITICAL: "crit", Severity.WARNING: "warn"}


class BoardRowLike(Protocol):
    """What the board is given per chat (``queries.BoardRow``)."""

    @property
    def id(self) -> int: ...
    @property
    def agent(self) -> str: ...
    @property
    def external_id(self) -> str: ...
    @property
    def summary(self) -> ChatSummary: ...
    @property
    def owner(self) -> str: ...
    @property
    def grouped(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class RowAction:
    kind: str
    icon: str
    label: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line, ready for its template. ``one`` of several with one cause: what it is in for is
    said above them all. ``cause`` is the headline without its advice, which stands on a line of
    its own: cut short, a sentence would lose just that."""

    id: int
    agent: str
    title: str
    summary: ChatSummary
    state: states.Meta
    connection: states.Meta | None
    tone: str
    cause: str
    strip: Strip
    share: str
    history: str
    headroom: str
    forecast: str
    room: str
    outcome: states.Meta | None
    change: str
    last: str
    replies: str
    waiting: int | None
    owner: str
    one: bool
    actions: tuple[RowAction, ...]


def row_of(row: BoardRowLike, now: int) -> Row:
    """``now`` tells a user who waits from a transcript that ended without an answer."""
    summary = row.summary
    last = summary.last_compaction
    return Row(
        id=row.id,
        agent=row.agent,
        title=summary.title or row.external_id,
        summary=summary,
        state=states.standing(summary),
        connection=_connection(summary),
        tone=TONES.get(summary.severity, "") if summary.severity else "",
        cause=summary.headline.removesuffix(summary.advice).rstrip(),
        one=row.grouped,
        strip=strip_of(summary),
        share=_share(summary),
        history=_history(summary),
        headroom=number(summary.headroom.trigger),
        forecast=_forecast(summary),
        room=_room(summary),
        outcome=states.outcome(last.outcome) if last else None,
        change=f"{short(last.before)} → {short(last.after)}" if last else "",
        last=_last(last) if last else "",
        replies=_replies(summary),
        waiting=summary.waiting_since if waits(summary, now) else None,
        owner=row.owner,
        actions=tuple(_actions(summary)),
    )


def _connection(summary: ChatSummary) -> states.Meta | None:
    """Said only where it is not plainly live."""
    return None if summary.connection == "live" else states.connection(summary.connection)


def _share(summary: ChatSummary) -> str:
    """Per cent of the budget; nothing where no window is known or the count cannot be right."""
    if summary.budget is None or summary.load.value is None or not summary.load.reliable:
        return ""
    return percent(summary.load.value, summary.budget)


def _history(summary: ChatSummary) -> str:
    if summary.trigger.scope != "history" or summary.history.limit is None:
        return ""
    return f"{number(summary.history.value)} / {number(summary.history.limit)}"


def _forecast(summary: ChatSummary) -> str:
    if summary.forecast is None or (summary.headroom.trigger or 0) <= 0:
        return ""
    return f"~{number(summary.forecast)} req."


def _room(summary: ChatSummary) -> str:
    """The cell in full, where it may have to be shortened."""
    history = _history(summary)
    if not history or not _forecast(summary):
        return f"history {history}" if history else ""
    return f"history {history}, about {plural(summary.forecast, 'request')} to the trigger"


def _last(last: AttemptBrief) -> str:
    inferred = " (inferred)" if last.inferred else ""
    label = states.outcome(last.outcome).label
    return f"{label}{inferred}: {number(last.before)} → {number(last.after)}"


def _replies(summary: ChatSummary) -> str:
    said = []
    if summary.empty_replies:
        said.append(f"empty ×{summary.empty_replies}")
    if summary.unusable_replies:
        said.append(f"unusable ×{summary.unusable_replies}")
    return " ".join(said)


_ROW_ACTIONS = (
    RowAction("compact_fallback", "scissors", "Force fallback"),
    RowAction("clear_latch", "lock-open", "Clear latch"),
)


def _actions(summary: ChatSummary) -> list[RowAction]:
    """The two of the mission, where the agent can and the chat is in a state that asks for it."""
    if summary.connection != "live" or summary.severity is None:
        return []
    can = set(summary.command_kinds)
    return [
        action
        for action in _ROW_ACTIONS
        if action.kind in can and (action.kind != "clear_latch" or _clearable(summary))
    ]


def _clearable(summary: ChatSummary) -> bool:
    """A latch that was only inferred has no handle."""
    return any(latch.kind != "inferred" for latch in summary.latches)
