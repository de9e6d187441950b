"""The list of incidents: its lines, and its filters as they stand in an address; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args
from urllib.parse import urlencode

from ctxhealth.core.incidents_words import say_cause, say_root
from ctxhealth.core.model import State
from ctxhealth.store.queries.incidents import IncidentRow, Which
from ctxhealth.web import states
from ctxhealth.web.filters import Select
from ctxhealth.web.format import duration, plural

NAMES = ("show", "agent", "root", "q")
MAX_VALUE = 200
WHICH: tuple[Which, ...] = get_args(Which)
_LABELS: dict[Which, str] = {"open": "Open", "closed": "Closed", "all": "All", "reviews": "Reviews"}


@dataclass(frozen=True, slots=True)
class Line:
    """One incident, ready for its row."""

    row: IncidentRow
    title: str
    state: states.Meta
    cause: str
    says: str
    group: str
    detected: str
    acted: str
    lasted: str
    open: bool


@dataclass(frozen=True, slots=True)
class Tab:
    name: str
    label: str
    count: int
    on: bool
    query: str


def line_of(row: IncidentRow, now: int) -> Line:
    review = row.kind == "review"
    known = row.state in set(State)
    state = states.state(State(row.state)) if known else _REVIEW
    ended = row.closed_at
    return Line(
        row=row,
        title=row.chat_title or row.chat_external,
        state=_REVIEW if review else state,
        cause=_cause(row),
        says=row.sentence,
        group=f"{plural(row.group_chats, 'chat')}, one cause" if row.group_chats > 1 else "",
        detected=duration(max(0, row.detected_at - row.started_at)) if not review else "",
        acted=_acted(row),
        lasted=duration(max(0, (now if ended is None else ended) - row.started_at)),
        open=ended is None,
    )


_REVIEW = states.Meta("Review", "eye", "neutral")


def _cause(row: IncidentRow) -> str:
    if row.cause is not None:
        return say_cause(row.cause)
    return say_root(row.root) if row.root else ""


def _acted(row: IncidentRow) -> str:
    if row.acted_at is None:
        return ""
    took = duration(max(0, row.acted_at - row.detected_at))
    return f"{took} by {row.acted_by}" if row.acted_by else took


def query_of(params: Mapping[str, str]) -> dict[str, str]:
    """The known filters that are set; anything else is left out."""
    found = {name: params.get(name, "").strip()[:MAX_VALUE] for name in NAMES}
    found = {name: value.replace("\x00", "") for name, value in found.items()}
    if found["show"] not in WHICH:
        found["show"] = ""
    return {name: value for name, value in found.items() if value}


def which_of(query: Mapping[str, str]) -> Which:
    return next((which for which in WHICH if which == query.get("show")), "open")


def link(query: Mapping[str, str], **changes: str) -> str:
    merged = {**query, **changes}
    return urlencode({name: value for name, value in merged.items() if value})


def tabs_of(query: Mapping[str, str], counts: Mapping[str, int]) -> list[Tab]:
    chosen = which_of(query)
    return [
        Tab(name, _LABELS[name], counts.get(name, 0), name == chosen,
            link(query, show="" if name == "open" else name))
        for name in WHICH
    ]  # fmt: skip


def selects_of(query: Mapping[str, str], choices: Mapping[str, list[str]]) -> list[Select]:
    """Agents and roots; a chosen value that no incident has any more stays choosable."""
    agents = _with(choices["agents"], query.get("agent", ""))
    roots = _with(choices["roots"], query.get("root", ""))
    return [
        Select("agent", "Agent", "all agents", tuple((a, a) for a in agents),
               query.get("agent", "")),
        Select("root", "Root cause", "any root cause", tuple((r, say_root(r)) for r in roots),
               query.get("root", "")),
    ]  # fmt: skip


def _with(values: list[str], chosen: str) -> list[str]:
    return values if not chosen or chosen in values else [chosen, *values]
